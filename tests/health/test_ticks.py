"""A ✓ is a claim: each check is given evidence on which it must not claim anything, and some on which it may."""

from __future__ import annotations

import pytest

from rlplay.health.examine import CHECKS, verdict
from rlplay.health.finding import Evidence
from tests.health.ticks import NOT_TICKED, TICKED

OF_TITLE = {check.title: check for check in reversed(CHECKS)}


def test_every_check_has_evidence_of_both_kinds() -> None:
    assert OF_TITLE.keys() == TICKED.keys() == NOT_TICKED.keys()
    assert all([*TICKED.values(), *NOT_TICKED.values()])


@pytest.mark.parametrize(
    ("title", "run", "claim"),
    [(title, run, claim) for title, rows in TICKED.items() for run, claim in rows],
)
def test_what_earns_a_tick(title: str, run: Evidence, claim: str) -> None:
    said = verdict(OF_TITLE[title], run)
    assert (said.ticked, said.text[: len(claim)]) == (True, claim)


@pytest.mark.parametrize(
    ("title", "run"),
    [pytest.param(title, run, id=f"{title}-{why}") for title, rows in NOT_TICKED.items() for why, run in rows.items()],
)
def test_what_does_not(title: str, run: Evidence) -> None:
    said = verdict(OF_TITLE[title], run)
    assert not said.ticked
    assert said.text
