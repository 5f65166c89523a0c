"""One step that is far too large: the reward is lost for good, and whatever was recorded names the step."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.health import ruin_checks as ruin
from rlplay.health.examine import findings
from tests.health.evidence import curves, evidence, seen_at

LOST = {"reward": [0.25, *[0.0] * 9], "reward_std": [0.45, *[0.0] * 9]}


@pytest.mark.parametrize(
    ("series", "fields", "how"),
    [
        ({}, {"shift": [0.85, *[0.0] * 9]}, "moved 85.0 % of the probability"),
        ({"clip_ratio/region_mean": [0.8, *[0.0] * 9]}, {"shift": None}, "had 80.0 % of its tokens clipped"),
        ({"weights/step": [0.46, *[0.2] * 9], "weights/trained": [1.0] * 10}, {"shift": None},
         "moved the weights by 0.46 of their norm"),
    ],
)  # fmt: skip
def test_the_step_that_ruined_a_run_is_named_before_what_follows(
    series: dict[str, list[float]], fields: dict[str, Any], how: str
) -> None:
    run = evidence(10, LOST | series, repeats=[0.0, *[0.9] * 9], **fields)
    found = findings(run)
    assert [each.name for each in found] == ["step too large"]
    assert found[0].evidence.startswith(f"Update 1 {how}")
    assert found[0].evidence.endswith("answers earned 0.25 on average, in the 9 updates from 2 on 0.")
    assert seen_at(found[0]) == (1, "moved")


def test_curves_alone_show_it_where_a_step_has_a_point_of_its_own() -> None:
    reward = {"reward": [0.25, 0.25, *[0.0] * 9], "reward_std": [0.45, 0.45, *[0.0] * 9]}
    assert ruin.ruined(curves(11, reward | {"clip_ratio/region_mean": [0.0, 0.8, *[0.0] * 9]})) is not None
    assert ruin.ruined(curves(11, reward)) is None


def test_a_reward_that_was_not_lost_or_not_by_a_step_is_not_ruined() -> None:
    far = {"shift": [0.85, *[0.1] * 9]}
    back = {"reward": [0.25, *[0.0] * 8, 0.3]}
    assert ruin.ruined(evidence(10, LOST | back, **far)) is None
    assert ruin.ruined(evidence(10, LOST, shift=0.15)) is None
    late = [0.1] * 5 + [0.85] * 5
    assert ruin.ruined(evidence(10, LOST, shift=late)) is None, "the reward was gone before"
    adapter = {"weights/step": [0.9] * 10, "weights/trained": [0.01] * 10}
    assert ruin.ruined(evidence(10, LOST | adapter, shift=None)) is None, "an adapter begins at 0"
    noise = {"reward": [0.5, 0.4, 0.45, 0.42, 0.48], "reward_std": [0.5] * 5}
    assert ruin.ruined(evidence(5, noise, shift=0.3)) is None
