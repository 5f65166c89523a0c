"""Runs of which only numbers were logged: what their numbers carry is found without any answer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest

from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import Evidence
from tests.health.evidence import curves

SOURCE = "verl 0.6"
NOISY = [0.5 + (-1) ** n * 0.1 for n in range(60)]
RISING = [0.05 + 0.01 * n + (-1) ** n * 0.02 for n in range(60)]
PLATEAU = [min(0.9, value) for value in (0.05 * n + (-1) ** n * 0.02 for n in range(60))]


def named(run: Evidence) -> list[str]:
    return [finding.name for finding in findings(run)]


@pytest.mark.parametrize(
    ("updates", "series", "name"),
    [
        (3, {"loss": [0.1, 0.2, float("nan")]}, "not finite"),
        (5, {"completions/clipped_ratio": [1.0] * 5, "reward": NOISY[:5]}, "no end"),
        (3, {"completions/clipped_ratio": [0.2, 0.4, 0.5], "reward": NOISY[:3]}, "truncated"),
        (5, {"reward": [1.0] * 5, "reward_std": [0.0] * 5}, "same reward"),
        (5, {"reward": [0.0] * 5, "frac_reward_zero_std": [1.0] * 5}, "same reward"),
        (5, {"learning_rate": [0.0] * 5, "reward": NOISY[:5]}, "step too small"),
        (16, {"reward": NOISY[:16], "frac_reward_zero_std": [0.95] * 16}, "no signal"),
        (5, {"clip_ratio/region_mean": [0.4] * 5, "reward": NOISY[:5]}, "clipped"),
        (6, {"entropy": [2.0, 1.0, 0.5, 0.2, 0.1, 0.05], "reward": NOISY[:6]}, "entropy"),
        (5, {"kl": [0.0, 2.0, 6.0, 6.0, 6.0], "reward": NOISY[:5]}, "kl"),
        (20, {"explained_variance": [0.0] * 20, "reward_std": [0.3] * 20, "reward": (NOISY * 3)[:20]}, "critic"),
        (20, {"reward": NOISY[:20]}, "flat"),
        (40, {"reward": [0.4, 0.5, 0.45, *NOISY[:37]]}, "flat"),
        (20, {"reward": RISING[19::-1]}, "flat"),
        (5, {"loss": [0.4] * 5, "learning_rate": [0.0] * 5, "rewards/accuracies": [0.5] * 5}, "step too small"),
    ],
)
def test_what_numbers_show(updates: int, series: Mapping[str, Sequence[float]], name: str) -> None:
    found = findings(curves(updates, series, SOURCE))
    assert found
    assert found[0].name == name
    assert found[0].place is None


@pytest.mark.parametrize(
    ("updates", "series"),
    [
        (60, {"reward": RISING}), (60, {"reward": PLATEAU, "frac_reward_zero_std": [n / 60 for n in range(60)]}),
        (23, {"reward": [0.15, 0.25, 0.38, 0.54, 0.81, *[0.88, 0.92, 0.96, 0.98, 0.9, 0.94] * 3]}),
        (24, {"reward": [0.15, 0.25, 0.38, *[0.96, 1.0, 0.92] * 7]}),
        (4, {"completions/clipped_ratio": [1.0] * 4}), (4, {"reward": [1.0] * 4, "reward_std": [0.0] * 4}),
        (3, {"completions/clipped_ratio": [0.4, 0.2, 0.1]}), (5, {"clip_ratio/region_mean": [0.5, 0.5, 0.2, 0.5, 0.5]}),
        (30, {"entropy": [2.0] * 10 + [0.1] * 20, "reward": RISING[:30]}),
    ],
)  # fmt: skip
def test_what_they_do_not(updates: int, series: Mapping[str, Sequence[float]]) -> None:
    assert not [name for name in named(curves(updates, series, SOURCE)) if name != "truncated"]


def test_a_batch_of_known_size_needs_fewer_updates() -> None:
    series = {"completions/clipped_ratio": [1.0] * 2}
    assert named(curves(2, series, SOURCE, num_prompts=4, num_generations=4)) == ["no end"]
    assert named(curves(2, series, SOURCE, num_prompts=4, num_generations=3)) == ["truncated"]
    equal = {"reward": [1.0] * 2, "reward_std": [0.0] * 2}
    assert named(curves(2, equal, SOURCE, num_prompts=4, num_generations=4)) == ["same reward"]


def test_what_is_not_on_record_is_named_with_what_would_record_it() -> None:
    run = curves(3, {"reward": [0.1, 0.2, 0.3]}, SOURCE)
    dashes = [each for each in verdicts(run, findings(run)) if not each.ticked]
    lacking = {each.title: each for each in dashes if each.record}
    assert lacking.keys() >= {"Template", "Sampler", "Right answers", "End of answers", "Entropy"}
    assert "rlplay.record" in lacking["Template"].record
    assert lacking["Entropy"].record == "log entropy"


def test_a_run_of_thousands_of_updates_is_judged_at_once() -> None:
    names = ("reward", "reward_std", "frac_reward_zero_std", "entropy", "kl", "loss", "grad_norm", "weights/step")
    run = curves(4000, {name: [0.5 + 0.1 * (n % 7) for n in range(4000)] for name in names}, SOURCE)
    began = time.process_time()
    verdicts(run, findings(run))
    assert time.process_time() - began < 2, "each number is looked at a few times, not once for every other"
