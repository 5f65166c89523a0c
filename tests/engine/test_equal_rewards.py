"""Answers that earned the same teach nothing: not nearly, and whatever the reward, the group and the algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms import baselines, scales
from rlplay.algorithms.apply import resolve
from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.statistics import group_statistics, weighted_mean
from rlplay.engine.credit_phase import assigned
from rlplay.engine.score import weighted
from rlplay.engine.tensors import Tensors
from rlplay.health.health_of_run import Health
from rlplay.trace.records import Credited, Finished, Sampled
from rlplay.trace.run import Run
from tests.engine.conftest import FROM_REWARDS, one_of_each_kind
from tests.engine.test_more_axes import records_of
from tests.engine.test_process import batch_of
from tests.numbers import update_of

CONSTANTS = [k / 100 for k in range(1, 100)]
COMPARING = [
    name
    for name in FROM_REWARDS
    if PRESETS[name].axes["baseline"] != "value"
    and (PRESETS[name].axes["baseline"] != "none" or name in ("grpo-process", "reinforce++"))
]
"""The presets whose signal is a difference between sampled answers; VinePPO's has its own baseline, tested below."""

ALONE = {"beta": 0.0, "kl_cov_ratio": 1.0, "overlong_buffer": 0}
"""Without what pulls on answers of equal reward: a KL term and a price on length."""


def test_nearly_all_presets_compare() -> None:
    assert set(FROM_REWARDS) - set(COMPARING) == {
        "reinforce", "a2c", "trpo", "ppo-penalty", "ppo", "rlhf-ppo", "vineppo",
    }  # fmt: skip


@pytest.mark.parametrize("generations", [pytest.param(4, marks=pytest.mark.slow), 8, 16])
@pytest.mark.parametrize("algorithm", COMPARING)
def test_equal_rewards_give_advantages_of_exactly_0(algorithm: str, generations: int) -> None:
    settings = resolve({"algorithm": algorithm, "num_generations": generations, "kl_ctrl": "fixed"} | ALONE)
    lengths = torch.randint(1, 9, (3 * generations,), generator=torch.Generator().manual_seed(generations)).tolist()
    for constant in CONSTANTS:
        batch = batch_of([(n, {}, constant) for n in lengths], generations)
        batch.parts = {"c": np.full(len(lengths), constant), "d": np.full(len(lengths), constant / 3)}
        batch.weights = {"c": 0.7, "d": 0.1}
        batch.greedy_rewards = torch.full((3,), constant, dtype=torch.double)
        assert not assigned(batch, settings, 0.0).advantages.any(), constant


@pytest.mark.parametrize("algorithm", COMPARING)
def test_a_group_of_equal_rewards_among_others_is_without_signal(algorithm: str) -> None:
    axes = PRESETS[algorithm].axes
    if axes["baseline"] in ("batch_mean", "greedy") or axes["scale_rewards"] == "whiten":
        pytest.skip("it compares over the batch, or with another answer")
    settings = resolve({"algorithm": algorithm} | ALONE)
    batch = batch_of([(3, {}, 0.97)] * 8 + [(4, {}, i / 7) for i in range(8)], 8)
    found = assigned(batch, settings, 0.0).advantages
    assert not found[:8].any()
    assert bool(found[8:].any())


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.floats(-1e12, 1e12))
def test_means_and_spreads_are_numpys_and_exact_where_values_are_equal(values: list[float], constant: float) -> None:
    given = torch.tensor([*values, *[constant] * 7], dtype=torch.double)
    group = torch.tensor([0] * len(values) + [1] * 7)
    xp = Tensors(given)
    mean, std = group_statistics(xp, given, group, 2)
    np.testing.assert_allclose(mean[0], np.mean(values), atol=1e-9)
    np.testing.assert_allclose(std[0], np.std(values, ddof=1), atol=1e-9)
    assert (float(mean[1]), float(std[1])) == (constant, 0.0)
    lengths = torch.arange(1, len(given) + 1)
    for baseline in (baselines.mean_of_group(xp, given, group), baselines.leave_one_out(xp, given, group),
                     baselines.length_weighted(xp, given, lengths, group)):  # fmt: skip
        assert bool((baseline[group == 1] == constant).all())
    whole = baselines.leave_one_out(xp, given, group)[: len(values)]
    alone = [np.mean(values[:i] + values[i + 1 :]) for i in range(len(values))]
    np.testing.assert_allclose(whole, alone, atol=1e-8)
    assert not scales.whiten(xp, torch.full((2, 3), constant, dtype=torch.double), torch.ones(2, 3).bool()).any()


def test_equal_rewards_beside_one_that_is_unknown_have_exactly_their_mean_and_no_spread() -> None:
    for constant in CONSTANTS:
        given = torch.tensor([constant] * 7 + [math.nan], dtype=torch.double)
        mean, std = group_statistics(Tensors(given), given, torch.zeros(8, dtype=torch.long), 1)
        assert (float(mean[0]), float(std[0])) == (constant, 0.0)


def test_what_has_no_weight_does_not_matter() -> None:
    values, weights = (torch.tensor(x, dtype=torch.double) for x in ([1.0, math.nan, 4.0], [1.0, 0.0, 2.0]))
    assert weighted_mean(Tensors(values), values, weights, torch.zeros(3, dtype=torch.long), 1).tolist() == [3.0]


def test_sums_that_are_equal_on_paper_are_equal() -> None:
    parts = {"a": np.array([0.1, 0.3, 0.0, np.nan]), "b": np.array([0.2, 0.0, 0.3, 0.3])}
    assert weighted(parts, {"a": 1.0, "b": 1.0}).tolist() == [0.3] * 4
    thirds = {"a": np.array([1 / 3, 1.0, 0.0]), "b": np.array([1.0, 0.0, 1.0]), "c": np.array([-1.0, 0.0, 0.0])}
    assert len(set(weighted(thirds, {"a": 3.0, "b": 0.7, "c": 0.7}).tolist()[:1])) == 1
    large = {"a": np.array([1000000.1, 1000000.3]), "b": np.array([0.2, 0.0])}
    assert weighted(large, {"a": 1.0, "b": 1.0}).tolist() == [1000000.3] * 2
    small = {"a": np.array([3e-7, 1e-7]), "b": np.array([0.0, 2e-7])}
    assert weighted(small, {"a": 1.0, "b": 1.0}).tolist() == [3e-7] * 2
    fine = {"a": np.ones(2), "b": np.array([1e-12, 1e-11])}
    assert weighted(fine, {"a": 1.0, "b": 1.0}).tolist() == [1.0, 1.00000000001]
    cancelled = {"a": np.array([1.0]), "b": np.array([-0.9]), "c": np.array([-0.1])}
    assert weighted(cancelled, {"a": 1.0, "b": 1.0, "c": 1.0}).tolist() == [0.0]


def test_large_rewards_that_differ_by_hundredths_are_not_equal() -> None:
    """float32 knows every sixteenth at a million: of rewards a hundredth apart it would see a few values only."""
    steps = np.arange(8)
    batch = batch_of([(2, {}, 1e6 + 0.01 * k) for k in steps], 8)
    found = assigned(batch, resolve({"algorithm": "grpo"}), 0.0).advantages[:, 0]
    np.testing.assert_allclose(found, (steps - 3.5) / (steps.std(ddof=1) + 1e-2), rtol=1e-5)


@pytest.mark.parametrize("algorithm", one_of_each_kind([*COMPARING, "vineppo"]))
def test_no_weight_changes_and_the_screen_agrees(start: Callable[..., Any], algorithm: str) -> None:
    driver, records = start(reward="same", algorithm=algorithm, learning_rate=0.1, num_generations=8, **ALONE)
    before = {name: p.detach().clone() for name, p in driver._state.lm.policy.named_parameters()}
    driver.advance("update", 2, lambda: False)
    driver.close()
    after = dict(driver._state.lm.policy.named_parameters())
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    finished, credited = records_of(Finished, records)[-1], records_of(Credited, records)[-1]
    assert finished.metrics["frac_reward_zero_std"] == 1
    assert finished.metrics["reward_std"] == 0
    assert finished.metrics["reward"] == 0.97
    assert not credited.group_std.any()
    assert not credited.advantages.any()
    update = update_of(records, 2)
    health = Health(Run())
    health.add(update)
    settings = msgspec.to_builtins(resolve({"algorithm": algorithm}))
    found = {finding.name: finding for finding in health.findings(2, settings)}
    assert found["no signal"].title == "Every advantage is 0"


PULLED_BACK = [
    {"num_iterations": 2},
    {"num_iterations": 2, "num_minibatches": 2, "per_device_train_batch_size": 3},
    {"kl_estimator": "k2", "kl_anchor": "old", "num_iterations": 2, "num_minibatches": 2},
    {"kl_estimator": "full"},
    {"kl_estimator": "full", "kl_anchor": "old", "num_iterations": 2},
    {"kl_placement": "reward", "kl_estimator": "k1"},
    {"kl_placement": "reward", "kl_estimator": "full"},
    {"algorithm": "rloo"},
    {"algorithm": "reinforce++"},
]
"""Ways of pulling the policy back to where it still is: prompts of several lengths, batches in parts, both anchors."""


LORA = {"use_peft": True, "lora_r": 4, "lora_target_modules": ["q_proj", "embed_tokens"]}
WEIGHTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({}, given) for given in PULLED_BACK),
    *((LORA, given) for given in PULLED_BACK[1:4]),
    *(({"dtype": "bfloat16"}, given) for given in (PULLED_BACK[1], PULLED_BACK[-2])),
]


@pytest.mark.parametrize(("weights", "given"), WEIGHTS, ids=lambda given: "-".join(map(str, given.values())))
def test_a_kl_to_the_same_weights_moves_nothing(
    start: Callable[..., Any], weights: dict[str, Any], given: dict[str, Any]
) -> None:
    """Passes laid out differently are 1e-6 nats apart, and Adam makes a full step of any gradient but 0."""
    given = {"algorithm": "grpo", "beta": 0.1, "num_prompts": 4, "learning_rate": 0.1, "num_iterations": 1} | given
    driver, records = start(reward="same", scenario=weights, **given)
    before = {name: p.detach().clone() for name, p in driver._state.parameters.items()}
    driver.advance("update", 3, lambda: False)
    driver.close()
    finished, sampled = records_of(Finished, records), records_of(Sampled, records)
    assert len(set(np.diff(sampled[-1].prompt_offsets).tolist())) > 1, "else all passes are laid out alike"
    assert [record.metrics["kl_old"] for record in finished] == [0.0] * 3
    assert [record.metrics["grad_norm"] for record in finished] == [0.0] * 3
    assert [record.metrics["kl"] for record in finished if "kl" in record.metrics] == [0.0] * 3
    assert all(torch.equal(p, before[name]) for name, p in driver._state.parameters.items())
    new, old = finished[-1], sampled[-1]
    for found, wanted in (
        (new.logprobs, old.old_logprobs), (new.top_logprobs, old.top_logprobs),
        (new.favourite_ids, old.top_ids[:, 0]), (new.favourite_logprobs, old.top_logprobs[:, 0]),
    ):  # fmt: skip
        np.testing.assert_array_equal(found, wanted)


def test_a_policy_that_has_moved_is_pulled_back_without_a_signal(start: Callable[..., Any]) -> None:
    driver, records = start(reward="same", algorithm="grpo", beta=0.1, num_iterations=1)
    with torch.no_grad():
        for parameter in driver._state.lm.policy.parameters():
            parameter.mul_(1.1)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (finished,) = records_of(Finished, records)
    assert min(finished.metrics[name] for name in ("kl", "kl_old", "grad_norm")) > 1e-4
