"""What `try` makes of the sick runs: most are cured, and of the others nothing that it tried helped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sick.repairs import repair, repairs
from tests.sick.runs import SICK, Sample


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_most_sick_runs_are_cured_and_healthy_ones_left_alone(tmp_path: Path) -> None:
    found = repairs(tmp_path, seed=0)
    sick = [each for each in found if each.sample.cause]
    assert sum(each.cured for each in sick) >= 14, [each.sample.name for each in sick if not each.cured]
    assert not [each.sample.name for each in found if not each.sample.cause and each.outcomes]


def test_a_sick_run_is_cured(tmp_path: Path) -> None:
    found = repair(_called("reward upside down"), tmp_path, seed=0)
    assert found.finding == found.sample.cause
    unchanged, *others = found.outcomes
    assert unchanged.verdict == "unchanged"
    assert others[0].verdict == "gone"
    assert found.cured


def test_what_no_setting_mends_is_not_tried(tmp_path: Path) -> None:
    found = repair(_called("template without a turn"), tmp_path, seed=0)
    assert (found.finding, found.outcomes, found.cured) == ("template", (), False)
    assert "template" in found.untried


def _called(name: str) -> Sample:
    return next(each for each in SICK if each.name == name)
