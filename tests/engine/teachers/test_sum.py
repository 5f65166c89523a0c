"""Shares, momentum and the rest add up to what the weights' move did to a target, to first order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.teachers.asking import Start, in_float64, never, targets_of, taught
from tests.numbers import update_of

CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"algorithm": "grpo", "beta": 0.1}, {"KL"}),
    ({"algorithm": "dr-grpo", "max_grad_norm": 0.02}, set()),
    ({"algorithm": "reinforce", "weight_decay": 0.3}, {"weight decay"}),
    ({"algorithm": "ppo", "num_minibatches": 1}, {"value loss"}),
    ({"algorithm": "gspo", "entropy_coef": 0.05, "lr_scheduler_type": "linear"}, {"entropy bonus"}),
    ({"algorithm": "dapo", "use_adaptive_entropy": True, "entropy_target": 9, "entropy_coef": 0.1}, {"entropy bonus"}),
    ({"algorithm": "cispo", "beta": 0.2, "kl_placement": "loss", "kl_estimator": "full"}, {"KL"}),
    ({"algorithm": "rlhf-ppo", "beta": 0.1, "per_device_train_batch_size": 5}, {"value loss"}),
    (
        {
            "algorithm": "gmpo",
            "sampler_lag": 1,
            "importance_sampling_mode": "token_truncate",
            "importance_sampling_clip_max": 1.01,
        },
        set(),
    ),
    ({"algorithm": "lite-ppo", "sampler_lag": 1, "old_logprobs_of": "sampler"}, set()),
    ({"algorithm": "sdpo", "success_reward_threshold": 0.4, "learning_rate": 1e-2}, set()),
    ({"algorithm": "iw-opd", "teacher_context": "group", "success_reward_threshold": 0.4}, set()),
    ({"algorithm": "rloo", "gradient_checkpointing": True, "reward": "some_groups"}, set()),
    (
        {
            "algorithm": "mis",
            "sampler_lag": 1,
            "beta": 0.1,
            "kl_placement": "loss",
            "learning_rate": 1e-2,
            "importance_sampling_clip_max": 1.05,
            "rollout_rs": "token_k2",
            "rollout_rs_threshold": 0.05,
        },
        {"KL"},
    ),
    (
        {
            "algorithm": "vespo",
            "sampler_lag": 1,
            "importance_sampling_mode": "token_mask",
            "learning_rate": 1e-2,
            "off_policy_mask_threshold": 0.02,
        },
        set(),
    ),
]
"""Algorithms, and what their losses have besides the tokens' log-probabilities."""


@pytest.mark.parametrize("steps", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("given", "rest"), CASES, ids=[given["algorithm"] for given, _ in CASES])
def test_in_float64_they_add_up(start: Start, given: dict[str, Any], rest: set[str], steps: int) -> None:
    driver, records = start(architecture="gpt2", **{"num_minibatches": 1, "num_iterations": steps} | given)
    in_float64(driver)
    driver.advance("update", 2, never)
    update = update_of(records, 2)
    for target in targets_of(update):
        found = taught(driver, target, 2)
        assert found.predicted == pytest.approx(found.first_order, rel=1e-4)
        assert abs(found.earlier) > 1e-4
        assert found.steps == len(update.steps) == steps
        assert {name for name, part in found.rest.items() if abs(part) > 1e-7} == rest
        assert found.batch == pytest.approx(float(found.shares.sum(dtype=np.float64)), rel=1e-4, abs=1e-6)
        assert np.sign(found.measured) == np.sign(found.first_order) or abs(found.first_order) < 0.05


@pytest.mark.parametrize("algorithm", ["grpo", "ppo", "gspo"])
def test_as_it_runs_they_add_up_but_for_rounding(start: Start, algorithm: str) -> None:
    driver, records = start(algorithm=algorithm, num_iterations=2)
    driver.advance("update", 2, never)
    for target in targets_of(update_of(records, 2)):
        found = taught(driver, target, 2)
        assert found.predicted == pytest.approx(found.first_order, rel=0.02, abs=1e-4)


def test_q_is_what_is_on_record(start: Start) -> None:
    driver, records = start(num_iterations=2)
    driver.advance("update", 3, never)
    update = update_of(records, 2)
    sampled, finished = update.sampled, update.finished
    assert sampled is not None
    assert finished is not None
    target = targets_of(update)[1]
    place = int(sampled.offsets[np.diff(sampled.offsets).argmax()]) + 2
    found = taught(driver, target, 2)
    assert found.before == pytest.approx(float(sampled.old_logprobs[place]), abs=1e-4)
    assert found.after == pytest.approx(float(finished.logprobs[place]), abs=1e-4)
    assert found.temperature == sampled.temperature
    assert found.shares.shape == sampled.old_logprobs.shape


def test_in_the_first_update_there_is_no_momentum(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    found = taught(driver, targets_of(update_of(records, 1))[0], 1)
    assert found.earlier == 0
    assert found.batch == pytest.approx(found.first_order, rel=0.02)


@pytest.mark.parametrize("steps", [1, 2])
def test_all_that_an_update_remembers_are_tokens_of_earlier_ones(start: Start, steps: int) -> None:
    driver, records = start(architecture="gpt2", num_iterations=steps)
    in_float64(driver)
    driver.advance("update", 3, never)
    target = targets_of(update_of(records, 3))[3]
    found = taught(driver, target, 3)
    assert [(since, update) for since, update, _ in found.earlier_by] == [(1, 2), (0, 1)]
    assert sum(part for *_, part in found.earlier_by) == pytest.approx(found.earlier, rel=1e-9)
    for _, by, part in found.earlier_by:
        assert float(taught(driver, target, 3, by).shares.sum(dtype=np.float64)) == pytest.approx(part, rel=1e-5)


def test_a_learning_rate_of_0_teaches_nothing(start: Start) -> None:
    driver, records = start(learning_rate=0.0)
    driver.advance("update", 2, never)
    found = taught(driver, targets_of(update_of(records, 2))[0], 2)
    assert (found.batch, found.earlier, found.first_order, found.measured) == (0, 0, 0, 0)
    assert not found.shares.any()


@pytest.mark.parametrize("minibatches", [1, 3])
def test_a_step_of_learning_rate_0_counts_in_the_later_ones(start: Start, minibatches: int) -> None:
    """As the first one of a warm-up: it moves nothing itself, and the momentum keeps its gradient."""
    driver, records = start(
        architecture="gpt2", warmup_steps=3, lr_scheduler_type="linear", num_iterations=3, num_minibatches=minibatches
    )
    in_float64(driver)
    driver.advance("update", 1, never)
    update = update_of(records, 1)
    assert update.steps[0].metrics["learning_rate"] == 0
    for target in targets_of(update):
        found = taught(driver, target, 1)
        assert found.predicted == pytest.approx(found.first_order, rel=1e-4)
        assert abs(found.first_order) > 1e-4
