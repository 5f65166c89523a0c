"""An entropy that rises for nothing, and a reward that was there and is gone."""

from __future__ import annotations

from typing import Any

import pytest

from rlplay.health.collapse_checks import collapsed, kept, rising
from tests.health.evidence import curves

NOISE = [0.01, -0.02, 0.015, 0.0, -0.01]
UP = [0.5 + 0.05 * n for n in range(20)]
FLAT = [0.4 + NOISE[n % 5] for n in range(20)]


@pytest.mark.parametrize(
    ("entropy", "reward", "found"),
    [
        (UP, FLAT, True),
        (UP, [0.4 - 0.01 * n + NOISE[n % 5] for n in range(20)], True),
        (UP, [0.4 + 0.02 * n + NOISE[n % 5] for n in range(20)], False),  # it pays
        (FLAT, FLAT, False),
        ([0.5 + 0.01 * n for n in range(20)], FLAT, False),  # too little
        ([0.05 + 0.008 * n for n in range(20)], FLAT, False),  # hardly any nats
        (UP[:9], FLAT[:9], False),  # too few
        ([1.4 - 0.05 * n for n in range(20)], FLAT, False),
    ],
)
def test_an_entropy_that_rises(entropy: list[float], reward: list[float], found: bool) -> None:
    finding = rising(curves(len(entropy), {"entropy": entropy, "reward": reward}))
    assert (finding is not None) == found
    if finding is not None:
        assert (finding.name, finding.settings) == ("entropy rises", ("learning_rate",))
        assert "from 0.6 nats in the first 5 updates to 1.35 in the last 5." in finding.evidence


def test_a_bonus_that_pays_for_it_is_the_cause() -> None:
    finding = rising(curves(20, {"entropy": UP, "reward": FLAT}, entropy_coef=0.1))
    assert finding is not None
    assert finding.settings == ("entropy_coef",)
    assert "0.1 now" in finding.change


def course(*levels: tuple[int, float]) -> list[float]:
    """Rewards near each of these levels for so many updates."""
    values = [level for count, level in levels for _ in range(count)]
    return [value + NOISE[n % 5] for n, value in enumerate(values)]


RUIN = course((6, 0.1), (6, 0.5), (10, 0.9), (8, 0.15))


@pytest.mark.parametrize(
    ("reward", "found"),
    [
        (RUIN, True),
        (course((6, 0.1), (6, 0.5), (10, 0.9), (8, 0.7)), False),  # most of it is there
        (course((10, 0.9), (20, 0.1)), False),  # it never rose
        (course((6, 0.1), (24, 0.9)), False),
        (RUIN[:-7], False),  # one update proves nothing
        ([*course((16, 0.1)), 400.0, *course((13, 0.1))], False),  # one reward far out
        ([0.1 + 0.4 * (n % 2) for n in range(30)], False),  # noise
        (course((4, 0.1), (4, 0.9), (6, 0.1)), False),  # too few
    ],
)
def test_a_reward_that_was_there_and_is_gone(reward: list[float], found: bool) -> None:
    run = curves(len(reward), {"reward": reward})
    finding = collapsed(run)
    assert (finding is not None) == found
    if finding is not None:
        assert finding.name == "collapse"
        assert "No metric on record" in finding.cause
    elif len(reward) >= 20:
        assert kept(run).startswith("at its best")


@pytest.mark.parametrize(
    ("metrics", "cause"),
    [
        ({"grad_norm": [0.5] * 20 + [30.0] * 10, "entropy": [0.5] * 22 + [4.0] * 8}, "A large gradient came first"),
        ({"mismatch_kl/mean": [1e-3] * 20 + [0.4] * 10, "kl": [0.1] * 23 + [9.0] * 7}, "Sampling and training drifted"),
        (
            {"entropy": [0.5] * 20 + [4.0] * 10, "grad_norm": [0.5] * 22 + [30.0] * 8},
            "The entropy left its range first",
        ),
        ({"completions/mean_length": [90.0] * 20 + [900.0] * 10}, "The length of the answers left"),
        ({"kl": [0.1] * 20 + [9.0] * 10}, "The KL to the reference grew first"),
        ({"kl": [0.1] * 30}, "No metric on record"),
    ],
)
def test_what_moved_first_is_the_cause(metrics: dict[str, Any], cause: str) -> None:
    finding = collapsed(curves(30, {"reward": RUIN} | metrics))
    assert finding is not None
    assert finding.cause.startswith(cause)
    if "No metric" not in cause:
        assert "in update 2" in finding.evidence


def test_a_policy_that_goes_back_to_its_reference_has_not_collapsed() -> None:
    assert collapsed(curves(30, {"reward": RUIN, "kl": [0.9] * 22 + [0.1] * 8})) is None
