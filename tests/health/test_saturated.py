"""A reward of which one part is full and another pays nobody, beside penalties that nobody incurs."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.health.examine import findings
from rlplay.health.saturated_checks import saturated
from tests.health.evidence import curves, evidence

FORMAT = [0.2, 0.6, *[0.95] * 10]
COURSES = {"rewards/format/mean": FORMAT, "rewards/exact/mean": [0.0] * 12, "reward": FORMAT, "reward_std": FORMAT}


def test_what_is_earned_and_what_is_not_are_named() -> None:
    (found,) = findings(curves(12, COURSES))
    assert found.title == "Only “format” is earned, and nothing is left to learn"
    assert found.evidence == (
        "“exact” has never been earned in 12 updates. “format” is earned by nearly all answers: 0.95 on average in the "
        "last 5 updates."
    )
    assert "Hardly any answer is right" in found.cause
    rare = saturated(curves(12, COURSES | {"rewards/exact/mean": [0.03, 0.0, 0.06] * 4}))
    assert rare is not None
    assert "“exact” was at most 0.06 on average" in rare.evidence


def test_answers_that_are_right_and_not_paid_point_at_the_reward() -> None:
    found = saturated(evidence(12, COURSES, contained={"answer": 8}))
    assert found is not None
    assert "50.0 % of the last 80 answers contain the value of the column “answer”." in found.evidence
    assert "in another form than the model writes" in found.cause
    assert found.examples


@pytest.mark.parametrize(
    ("courses", "fields"),
    [
        ({}, {"contained": {"answer": 13}}),  # most answers are right
        ({"gold/right/mean": [0.9] * 12}, {}),
        ({"rewards/format/mean": FORMAT[:9]}, {}),  # too few
        ({"rewards/format/mean": [0.05 * n for n in range(12)]}, {}),  # it still rises
        ({"rewards/format/mean": [0.02] * 12}, {}),  # it pays nobody, either
        ({"rewards/format/std": [0.5] * 12}, {}),  # half of the answers earn it
        ({"rewards/exact/mean": [0.0] * 6 + [0.02 * n for n in range(6)]}, {}),  # it begins to be earned
        ({"rewards/exact/mean": [-0.1] * 12}, {}),
    ],
)
def test_no_alarm(courses: dict[str, Any], fields: dict[str, Any]) -> None:
    assert saturated(evidence(12, COURSES | courses, **fields)) is None


@pytest.mark.parametrize(("full", "nothing"), [("right", "overlong_penalty"), ("right", "format"), ("a", "b")])
def test_the_names_of_parts_tell_a_penalty_from_a_test(full: str, nothing: str) -> None:
    named = {f"rewards/{full}/mean": FORMAT, f"rewards/{nothing}/mean": [0.0] * 12}
    assert saturated(curves(12, named)) is None
