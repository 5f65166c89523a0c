"""Algorithms as combinations of axes, and changes of several settings at once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.scenario.algorithms import PRESETS
from rlplay.scenario.presets import apply, apply_all, in_order, resolve, validated
from rlplay.scenario.settings import Settings

AXES = {
    "returns", "baseline", "scale_rewards", "surrogate", "kl_placement", "kl_estimator", "beta", "aggregation",
    "num_iterations", "num_minibatches",
}  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_sets_every_axis(name: str) -> None:
    assert set(PRESETS[name].axes) == AXES


@pytest.mark.parametrize(("first", "second"), itertools.permutations(PRESETS, 2))
def test_a_change_of_algorithm_leaves_nothing_behind(first: str, second: str) -> None:
    assert apply(apply(Settings(), "algorithm", first), "algorithm", second) == resolve({"algorithm": second})


def test_the_passes_of_the_classics() -> None:
    ppo, reinforce = resolve({"algorithm": "ppo"}), resolve({"algorithm": "reinforce"})
    assert (ppo.num_iterations, ppo.num_minibatches) == (4, 2)
    assert (reinforce.num_iterations, reinforce.num_minibatches) == (1, 1)


def test_ppo_for_rlhf_has_its_kl() -> None:
    settings = resolve({"algorithm": "rlhf-ppo"})
    assert (settings.kl_placement, settings.beta) == ("reward", 0.05)


WORDS = st.sampled_from(["broadcast", "to_go", "gae", "none", "batch_mean", "group_mean", "value", "group"])
PAIRS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"returns": "gae", "baseline": "value"}),
    ({}, {"baseline": "value", "returns": "gae"}),
    ({"algorithm": "ppo"}, {"baseline": "group_mean", "returns": "broadcast"}),
    ({"algorithm": "ppo"}, {"returns": "broadcast", "baseline": "group_mean", "num_iterations": 1}),
    ({}, {"baseline": "group_mean", "algorithm": "ppo", "returns": "broadcast"}),
    ({"num_generations": 1, "algorithm": "reinforce"}, {"baseline": "group_mean", "num_generations": 4}),
    ({"num_prompts": 1}, {"num_minibatches": 16, "num_prompts": 2}),
]


@pytest.mark.parametrize(("held", "changes"), PAIRS)
def test_an_order_in_which_every_step_is_allowed(held: dict[str, Any], changes: dict[str, Any]) -> None:
    start = settings = resolve(held)
    for name, value in in_order(start, changes):
        settings = validated(apply(settings, name, value))
    assert settings == apply_all(start, changes)


@given(
    st.sampled_from(list(PRESETS)), st.dictionaries(st.sampled_from(["returns", "baseline", "scale_rewards"]), WORDS)
)
def test_any_order_ends(algorithm: str, changes: dict[str, Any]) -> None:
    start = settings = resolve({"algorithm": algorithm})
    try:
        goal = apply_all(start, changes)
    except ValueError:
        return
    for name, value in in_order(start, changes):
        settings = validated(apply(settings, name, value))
    assert settings == goal


def test_what_does_not_fit_is_refused_as_a_whole() -> None:
    with pytest.raises(ValueError, match="returns=gae needs baseline=value"):
        in_order(Settings(), {"lam": 1, "returns": "gae"})
