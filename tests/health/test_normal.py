"""What is said to be normal: each thing where the run shows it, and the arithmetic behind it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings
from rlplay.health.finding import Evidence
from rlplay.health.normal import _BEGINS, Normal, normal
from tests.health.evidence import curves, evidence

ONE_STEP: dict[str, Any] = {"num_minibatches": 1, "num_iterations": 1, "beta": 0.0}
TINY = [1e-8, -2e-8, 1e-8, 0.0, 3e-8, 1e-8]
SPREAD = [0.4] * 6


def titles(run: Evidence) -> list[str]:
    return [each.title for each in normal(run)]


def one(run: Evidence, title: str) -> Normal:
    (found,) = [each for each in normal(run) if each.title == title]
    return found


def test_advantages_of_a_group_cancel() -> None:
    """By hand: each answer's mean ratio · A with ratio 1 is its A, and a group's A sum to 0 however they are scaled."""
    rewards = np.random.default_rng(0).normal(size=(5, 8))
    grouped = (rewards - rewards.mean(axis=1, keepdims=True)) / rewards.std(axis=1, keepdims=True, ddof=1)
    others = rewards - (rewards.sum(axis=1, keepdims=True) - rewards) / 7
    assert grouped.mean() == pytest.approx(0, abs=1e-12)
    assert others.mean() == pytest.approx(0, abs=1e-12)
    lengths = np.arange(40).reshape(5, 8)
    assert abs((grouped * lengths).sum() / lengths.sum()) > 1e-3, "unless lengths weigh them"


def test_a_loss_near_0_is_explained_by_one_step() -> None:
    run = evidence(series={"loss": TINY, "reward_std": SPREAD}, settings=ONE_STEP)
    found = one(run, "A loss near 0")
    assert found.sure
    assert found.text.startswith("−2e-8 to 3e-8. ")
    assert not one(curves(6, {"loss": TINY, "reward_std": SPREAD, "reward": SPREAD}), "A loss near 0").sure
    weighted = evidence(series={"loss": TINY, "reward_std": SPREAD}, settings=ONE_STEP | {"aggregation": "token_mean"})
    assert "unequal lengths" in one(weighted, "A loss near 0").text


@pytest.mark.parametrize(
    "run",
    [
        evidence(series={"loss": TINY, "reward_std": SPREAD}, settings={"num_iterations": 2}),
        evidence(series={"loss": TINY, "reward_std": [0.0] * 6}, settings=ONE_STEP),
        evidence(series={"loss": TINY, "reward_std": SPREAD}, settings=ONE_STEP | {"baseline": "none"}),
        evidence(series={"loss": [0.3] * 6, "reward_std": SPREAD}, settings=ONE_STEP),
        evidence(4, {"loss": TINY[:4], "reward_std": SPREAD}, settings=ONE_STEP),
        evidence(series={"loss": TINY, "reward_std": SPREAD}, settings=ONE_STEP | {"loss_type": "sft"}),
    ],
)
def test_what_no_small_loss_is_explained_by(run: Evidence) -> None:
    assert not {"A loss near 0", "A loss below 0"} & {*titles(run)}


def test_a_loss_below_0() -> None:
    run = evidence(series={"loss": [-0.1, 0.2, -0.3, 0.1, 0.0, 0.1], "reward_std": SPREAD})
    assert "−0.3 to 0.2" in one(run, "A loss below 0").text


def test_where_advantages_cancel_the_loss_is_the_penalty() -> None:
    series = {"loss": [0.0, 4e-4, 4e-3, 2e-3, 1e-2, 2e-2], "kl": [0.0, 0.005, 0.05, 0.03, 0.1, 0.2]}
    chosen = ONE_STEP | {"beta": 0.05}
    assert "0.02 at update 6" in one(evidence(series=series, settings=chosen), "A loss that rises").text
    for other in ({"beta": 0.0}, {"num_iterations": 3}, {"aggregation": "token_mean"}, {"kl_placement": "reward"}):
        assert "A loss that rises" not in titles(evidence(series=series, settings=chosen | other))


def test_nothing_is_clipped_by_the_first_step() -> None:
    none = {"clip_ratio/region_mean": [0.0] * 6}
    assert one(evidence(series=none, settings=ONE_STEP), "A clip ratio of 0").sure
    assert not one(curves(6, none), "A clip ratio of 0").sure
    assert "A clip ratio of 0" not in titles(evidence(series=none))
    some = {"clip_ratio/region_mean": [0.0] * 5 + [0.1]}
    assert "A clip ratio of 0" not in titles(evidence(series=some, settings=ONE_STEP))


@pytest.mark.parametrize("loss_type", [*_BEGINS])
def test_the_first_loss_is_the_loss_s_own_at_a_margin_of_0(loss_type: str) -> None:
    value, _, _ = _BEGINS[loss_type](0.1)
    row, zero = PAIR_LOSSES[loss_type], np.zeros(4)
    given = {
        "gap": zero, "score": zero, "chosen": np.array([True, False] * 2), "kto_baseline": 0.0, "margin": zero,
        "chosen_score": zero, "rejected_score": zero, "mean_gap": zero, "policy_gap": zero, "ref_gap": zero,
    }  # fmt: skip
    settings = dataclasses.asdict(_Chosen())
    assert row.compute is not None
    takes = row.compute.__code__.co_varnames[1 : row.compute.__code__.co_argcount]
    assert np.mean(row.compute(NumpyArrays, **{name: (given | settings)[name] for name in takes})) == pytest.approx(
        value
    )


@dataclasses.dataclass
class _Chosen:
    beta: float = 0.1
    label_smoothing: float = 0.0
    desirable_weight: float = 1.0
    undesirable_weight: float = 1.0
    center_rewards_coefficient: float = 0.0
    discopop_tau: float = 0.05


def test_a_first_loss_is_named_only_where_it_is_the_first() -> None:
    pairs: dict[str, Any] = {"loss_type": "sigmoid", "beta": 0.1}
    run = curves(3, {"loss": [0.6931, 0.6, 0.5], "rewards/accuracies": [0.0, 1.0, 1.0]}, **pairs)
    assert titles(run) == ["A first loss of 0.693", "An accuracy of 0 at first"]
    assert one(run, "A first loss of 0.693").sure
    assert titles(dataclasses.replace(run, first=2)) == []
    assert titles(curves(2, {"loss": [0.72, 0.6]}, **pairs)) == []
    unstated = curves(2, {"loss": [0.693, 0.6], "rewards/accuracies": [0.5, 1.0]})
    assert [(each.title, each.sure) for each in normal(unstated)] == [("A first loss of 0.693", False)]
    assert titles(curves(2, {"loss": [25.0, 20.0]}, loss_type="ipo", beta=0.1)) == ["A first loss of 25"]


def test_what_begins_at_0_and_what_is_measured_before_it_is_cut() -> None:
    series = {"kl": [0.0, *[0.1] * 5], "learning_rate": [0.0, *[1e-5] * 5], "grad_norm": [3.0] * 6}
    run = evidence(series=series, settings={"max_grad_norm": 1.0})
    assert titles(run) == ["A KL of 0 at first", "grad_norm above max_grad_norm", "A learning rate of 0 at first"]
    assert "above 0 from update 2 on" in one(run, "A learning rate of 0 at first").text
    none = {"kl": [0.1] * 6, "learning_rate": [0.0] * 6, "grad_norm": [3.0] * 5 + [0.9]}
    assert titles(evidence(series=none, settings={"max_grad_norm": 1.0})) == []


def test_a_kl_that_is_always_0_is_said_to_be_nothing() -> None:
    rewards = {"num_generations": 8}
    assert titles(curves(5, {"kl": [0.0] * 5, "reward": [0.5] * 5}, **rewards)) == []
    assert titles(curves(5, {"kl": [0.0, *[0.1] * 4], "reward": [0.5] * 5}, **rewards)) == ["A KL of 0 at first"]
    assert titles(evidence(1, {"kl": [0.0]})) == ["A KL of 0 at first"]


def test_fine_tuning_leaves_prompts_out() -> None:
    run = evidence(1, settings={"loss_type": "sft"})
    assert "counts its 16 answers; the 40 tokens of their prompts" in one(run, "Prompts without a loss").text
    assert titles(evidence(1, settings={"loss_type": "sft"}, prompt_tokens=16)) == [], "each has one token before it"


def test_the_defaults_of_settings_are_what_the_tests_assume() -> None:
    assert (Settings().baseline, Settings().aggregation) == ("group_mean", "seq_mean_token_mean")
