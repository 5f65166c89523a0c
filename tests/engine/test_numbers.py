"""What the engine records, against the float64 reference: every preset, every number of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlplay.engine.knobs import as_dict
from rlplay.scenario.algorithms import PRESETS
from rlplay.scenario.presets import resolve
from rlplay.trace.records import spans
from rlplay.trace.update import Update
from tests.engine import reference
from tests.engine.conftest import SMALL

TOLERANCE = 1e-5

CASES = [{"algorithm": name} for name in PRESETS] + [
    {"algorithm": "grpo", "beta": 0.2, "num_iterations": 3, "epsilon": 0.05},
    {"algorithm": "grpo", "beta": 0.2, "kl_estimator": "k1", "use_bias_correction_kl": False, "num_minibatches": 2},
    {"algorithm": "grpo", "beta": 0.2, "kl_estimator": "k2", "scale_rewards": "batch", "aggregation": "token_mean"},
    {"algorithm": "rlhf-ppo", "beta": 0.1, "gamma": 0.9, "lam": 0.8, "learning_rate": 1e-2},
    {"algorithm": "ppo", "epsilon": 0.02, "epsilon_high": 0.05, "cliprange_value": 0.01, "learning_rate": 1e-2},
    {"algorithm": "dr-grpo", "temperature": 0.7, "num_iterations": 2},
    {"algorithm": "reinforce", "gamma": 0.9, "kl_placement": "reward", "beta": 0.3},
    {"algorithm": "reinforce", "returns": "to_go", "baseline": "value", "gamma": 0.95, "num_iterations": 2},
]


def _update(start: Callable[..., Any], given: dict[str, Any]) -> Update:
    driver, records = start(**given)
    driver.advance("update", 2, lambda: False)
    driver.close()
    update = Update(2)
    for record in records:
        if record.update == 2:
            update.add(record)
    return update


@pytest.mark.parametrize("given", CASES, ids=lambda g: " ".join(f"{k}={v}" for k, v in g.items()))
def test_every_number_of_an_update_equals_the_reference(start: Callable[..., Any], given: dict[str, Any]) -> None:
    update = _update(start, given)
    settings = as_dict(resolve(SMALL | given))
    sampled, scored, credited = update.sampled, update.scored, update.credited
    assert sampled is not None
    assert scored is not None
    assert credited is not None
    assert credited.ref_logprobs is not None
    offsets = sampled.offsets
    old, ref = (reference.split(a, offsets) for a in (sampled.old_logprobs, credited.ref_logprobs))
    values = None if credited.values is None else reference.split(credited.values, offsets)

    stream = reference.token_rewards(scored.rewards, old, ref, settings)
    np.testing.assert_allclose(credited.token_rewards, np.concatenate(stream), atol=TOLERANCE)
    expected = reference.advantages(stream, values, sampled.group, settings)
    np.testing.assert_allclose(credited.advantages, np.concatenate(expected), atol=1e-4, rtol=TOLERANCE)

    assert np.ptp(credited.advantages) > 0.1

    advantages = reference.split(credited.advantages, offsets)
    returns = reference.split(credited.returns, offsets)
    assert len(update.steps) == settings["num_iterations"] * settings["num_minibatches"]
    for step in update.steps:
        lengths = np.diff(offsets)[step.rows]
        own = reference.split(step.logprobs, np.concatenate([[0], np.cumsum(lengths)]))
        loss, pull, ratio, state = reference.loss_and_pull(
            own, [old[i] for i in step.rows], [ref[i] for i in step.rows], [advantages[i] for i in step.rows], settings
        )
        np.testing.assert_allclose(step.importance_ratio, np.concatenate(ratio), atol=TOLERANCE, rtol=TOLERANCE)
        np.testing.assert_array_equal(step.clip_state, np.concatenate(state))
        np.testing.assert_allclose(step.dloss_dlogp, np.concatenate(pull), atol=TOLERANCE, rtol=1e-4)
        np.testing.assert_allclose(
            step.metrics["clip_ratio/region_mean"], np.abs(np.concatenate(state)).mean(), atol=1e-6
        )
        if step.values is not None and values is not None:
            now = reference.split(step.values, np.concatenate([[0], np.cumsum(lengths)]))
            error = reference.value_loss(
                now, [values[i] for i in step.rows], [returns[i] for i in step.rows], settings["cliprange_value"]
            )
            np.testing.assert_allclose(step.metrics["value_loss"], error, rtol=1e-4, atol=TOLERANCE)
            loss += settings["vf_coef"] * error
        np.testing.assert_allclose(step.metrics["loss"], loss, atol=TOLERANCE, rtol=TOLERANCE)
        if step.kl is not None:
            r, p, w = (np.concatenate(rows) for rows in ([ref[i] for i in step.rows], own, ratio))
            term = reference.kl(settings["kl_estimator"], r, p) * (w if settings["use_bias_correction_kl"] else 1)
            np.testing.assert_allclose(step.kl, term, atol=TOLERANCE)


def test_the_first_step_has_ratio_one_and_the_metrics_are_the_means_of_the_tokens(start: Callable[..., Any]) -> None:
    update = _update(start, {"algorithm": "grpo", "num_iterations": 2})
    sampled, finished = update.sampled, update.finished
    assert sampled is not None
    assert finished is not None
    assert np.abs(update.steps[0].importance_ratio - 1).max() < 1e-4
    assert np.abs(update.steps[1].importance_ratio - 1).max() > 1e-4
    assert finished.metrics["entropy"] == pytest.approx(sampled.entropy.mean(), abs=1e-6)
    assert finished.metrics["completions/mean_length"] == pytest.approx(np.diff(sampled.offsets).mean())
    shown = spans(sampled.offsets, np.flatnonzero(sampled.group == 0))
    new = update.new_logprobs()
    assert new is not None
    w = np.exp(np.float64(new[shown]) - sampled.old_logprobs[shown])
    assert finished.metrics["kl_old"] == pytest.approx((w - np.log(w) - 1).mean(), abs=1e-6)
