"""Sick runs are named by their cause, and healthy ones are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sick.table import verdicts


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_finding_names_the_cause(seed: int, tmp_path: Path) -> None:
    judged = verdicts(tmp_path, seed)
    wrong = [(each.sample.name, each.first) for each in judged if each.sample.cause and not each.right]
    alarmed = [(each.sample.name, each.alarms) for each in judged if not each.sample.cause and not each.right]
    assert len(wrong) <= 2, wrong
    assert len(alarmed) <= 1, alarmed
