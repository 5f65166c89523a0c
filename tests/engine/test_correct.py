"""The correction for a sampler that is not quite the policy, against loops over its definition, and in an update."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.corrections import REJECTIONS
from rlplay.engine import credit_phase
from rlplay.engine.batch import Batch
from rlplay.engine.correct import correct, correction_metrics, rule_of
from rlplay.engine.driver import Driver
from rlplay.trace.records import LEFT_OUT, AnyRecord, Credited, Finished, Stepped, spans
from rlplay.trace.update import Update
from rlplay.ui.formula import surrogate
from rlplay.ui.formula.loss import objective
from tests.engine.conftest import SMALL
from tests.engine.test_update import only
from tests.numbers import numbers_of, update_of
from tests.parity.fixed import fixed, sampled_elsewhere
from tests.parity.ours import SIZES, as_batch

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
MASKED = LEFT_OUT.index("the sampler's probability is too far from the policy's")


def batch_with(environment: bool) -> Batch:
    given = sampled_elsewhere(fixed(torch.float64, 3), 3)
    if environment:
        given.environment.copy_(given.mask & ~given.holes)
    return as_batch(given)


def by_answer(batch: Batch) -> list[list[float]]:
    """ℓ_old − ℓ_sampler of the sampled tokens of each answer."""
    assert batch.sampling_logprobs is not None
    apart = batch.old_logprobs - batch.sampling_logprobs
    return [row[inside].tolist() for row, inside in zip(apart, batch.known_masks[0], strict=True)]


@pytest.mark.parametrize("environment", [False, True])
@pytest.mark.parametrize(("low", "high"), [(None, 1.2), (0.8, 1.2), (0.8, None), (None, None)])
@pytest.mark.parametrize("outside", ["truncate", "mask"])
@pytest.mark.parametrize("level", ["token", "sequence", "geometric"])
def test_a_factor_is_what_its_level_and_bounds_say(
    level: str, outside: str, low: float | None, high: float | None, environment: bool
) -> None:
    batch = batch_with(environment)
    s = resolve(SIZES | {"importance_sampling_mode": f"{level}_{outside}", "importance_sampling_clip_min": low,
                         "importance_sampling_clip_max": high})  # fmt: skip
    correct(batch, s)
    assert batch.correction is not None
    expected, of_answers = [], []
    for row in by_answer(batch):
        mean = {"token": None, "sequence": sum(row), "geometric": sum(row) / len(row)}[level]
        factors = []
        for x in row if mean is None else [mean] * len(row):
            ratio = math.exp(x)
            below, above = low is not None and ratio < low, high is not None and ratio > high
            if below or above:
                ratio = 0.0 if outside == "mask" else (high if above else low) or 0.0
            factors.append(ratio)
        expected += factors
        of_answers += factors if mean is None else factors[:1]
    np.testing.assert_allclose(batch.correction[batch.mask].numpy(), expected, rtol=1e-12)
    rule = rule_of(batch, s)
    assert rule is not None
    assert (rule.level, rule.outside, rule.low, rule.high) == (level, outside, low, high)
    found = correction_metrics(batch, s)
    name = "sampling/importance_sampling_ratio/"
    assert found[f"{name}min"] == pytest.approx(min(of_answers))
    assert found[f"{name}mean"] == pytest.approx(np.mean(of_answers))
    assert found[f"{name}max"] == pytest.approx(max(of_answers))
    if outside == "mask":
        assert found[f"{name}masked"] == pytest.approx(np.mean(np.array(expected) == 0))


@pytest.mark.parametrize("name", [name for name in REJECTIONS if name != "none"])
def test_a_rejection_leaves_out_what_is_too_far_apart(name: str) -> None:
    over, _, estimator = name.rpartition("_")
    batch, threshold = batch_with(True), {"k1": 1.2, "k2": 0.04, "k3": 0.05}[estimator]
    s = resolve(SIZES | {"rollout_rs": name, "rollout_rs_threshold": threshold})
    correct(batch, s)
    assert batch.correction is None
    assert batch.rejected is not None
    expected = []
    for row in by_answer(batch):
        each = [{"k1": -x, "k2": x * x / 2, "k3": math.exp(x) - x - 1}[estimator] for x in row]
        whole = {"token": None, "seq_sum": sum(each), "seq_mean": sum(each) / len(each), "seq_max": max(each)}[over]
        for found in each if whole is None else [whole] * len(each):
            inside = abs(found) <= math.log(threshold) if estimator == "k1" else found <= threshold
            expected.append(not inside)
    assert batch.rejected[batch.mask].tolist() == expected
    assert 0 < sum(expected) < len(expected)
    masked = correction_metrics(batch, s)["sampling/importance_sampling_ratio/masked"]
    assert masked == pytest.approx(np.mean(expected))


@pytest.fixture
def other_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch as if a sampler had drawn it whose log-probabilities are some tenths off."""

    def with_sampler(batch: Batch, settings: Any) -> None:
        noise = torch.randn(batch.ids.shape, generator=torch.Generator().manual_seed(batch.update))
        batch.sampling_logprobs = batch.old_logprobs - 0.3 * noise
        correct(batch, settings)

    monkeypatch.setattr(credit_phase, "correct", with_sampler)


def played(start: Start, **given: Any) -> Update:
    driver, records = start(**given)
    driver.advance("update", 1, lambda: False)
    driver.close()
    return update_of(records)


def test_what_the_policy_sampled_itself_is_trained_on_as_ever(start: Start) -> None:
    given = {"algorithm": "grpo", "num_iterations": 2}
    plain = played(start, run="plain.rlplay", **given)
    mode = {"importance_sampling_mode": "token_mask", "rollout_rs": "seq_mean_k3", "off_policy_mask_threshold": 9.0}
    same = played(start, run="same.rlplay", **given, **mode)
    assert same.credited is not None
    assert same.credited.correction is None
    assert same.credited.correction_rule is None
    for one, other in zip(plain.steps, same.steps, strict=True):
        np.testing.assert_array_equal(one.dloss_dlogp, other.dloss_dlogp)
        np.testing.assert_array_equal(one.logprobs, other.logprobs)
    assert plain.finished is not None
    assert same.finished is not None
    assert not [name for name in same.finished.metrics if name.startswith("sampling/")]


@pytest.mark.usefixtures("other_sampler")
@pytest.mark.parametrize("mode", ["token_truncate", "token_mask", "sequence_mask", "geometric_truncate"])
def test_a_factor_multiplies_the_pull_of_its_token(start: Start, mode: str) -> None:
    given = {"algorithm": "grpo", "importance_sampling_clip_max": 1.1, "importance_sampling_clip_min": 0.7}
    plain = played(start, run="plain.rlplay", **given)
    found = played(start, run="corrected.rlplay", importance_sampling_mode=mode, **given)
    assert found.sampled is not None
    assert found.credited is not None
    factor, (step,) = found.credited.correction, found.steps
    assert factor is not None
    assert step.left_out is not None
    np.testing.assert_allclose(step.dloss_dlogp, factor * plain.steps[0].dloss_dlogp, rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(step.left_out == MASKED, factor == 0)
    assert bool((factor == 0).any()) == mode.endswith("mask")
    assert step.metrics["loss"] != plain.steps[0].metrics["loss"]


@pytest.mark.usefixtures("other_sampler")
def test_what_is_rejected_does_not_count_in_the_mean_either(start: Start) -> None:
    update = played(start, algorithm="dapo", rollout_rs="token_k2", rollout_rs_threshold=0.02, num_minibatches=1)
    (step,) = update.steps
    assert step.left_out is not None
    assert step.weights is not None
    kept = step.left_out == 0
    assert 0 < kept.sum() < len(kept)
    np.testing.assert_array_equal(step.left_out[~kept], MASKED)
    np.testing.assert_allclose(step.weights, kept / kept.sum(), rtol=1e-6)
    assert not step.dloss_dlogp[~kept].any()


@pytest.mark.usefixtures("other_sampler")
@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "grpo", "beta": 0.2, "num_iterations": 2, "importance_sampling_mode": "token_truncate"},
        {"algorithm": "gspo", "num_iterations": 2, "importance_sampling_mode": "sequence_mask"},
        {"algorithm": "vespo", "num_iterations": 2, "importance_sampling_mode": "token_mask"},
        {"algorithm": "dr-grpo", "importance_sampling_mode": "geometric_mask", "rollout_rs": "token_k3",
         "rollout_rs_threshold": 0.05},
        {"algorithm": "grpo", "off_policy_mask_threshold": 0.02, "num_iterations": 2},
    ],
    ids=lambda given: given["algorithm"],
)  # fmt: skip
def test_the_formula_of_each_token_comes_to_the_loss(start: Start, given: dict[str, Any]) -> None:
    given = {"importance_sampling_clip_max": 1.3, "learning_rate": 1e-3} | given
    update, s = played(start, **given), resolve(SMALL | given)
    assert update.sampled is not None
    for step in update.steps[-s.num_minibatches :]:
        policy = kl = 0.0
        for token in spans(update.sampled.offsets, step.rows):
            n = numbers_of(update, int(token))
            value = surrogate.value(s, n)
            assert value is not None
            lines = ["".join(text for text, _ in line) for line in objective(s, n)]
            multiplied = any(line.startswith("adds ") and "c·S" in line for line in lines)
            assert multiplied == (n.correction is not None and s.surrogate != "vespo")
            factor = n.correction if multiplied and n.correction is not None else 1.0
            assert n.weight is not None
            policy += 0.0 if n.left_out else n.weight * factor * value
            kl += n.weight * (n.kl or 0.0) * s.beta
        assert policy == pytest.approx(step.metrics["policy_loss"], abs=2e-6)
        assert policy + kl == pytest.approx(step.metrics["loss"], abs=2e-6)


@pytest.mark.usefixtures("other_sampler")
def test_an_answer_whose_tokens_are_all_masked_needs_no_backward_pass(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(algorithm="grpo", importance_sampling_mode="sequence_mask",
                            importance_sampling_clip_max=0.0001)  # fmt: skip
    monkeypatch.setattr("rlplay.engine.policy_gradient._backward", None)
    driver.advance("update", 1, lambda: False)
    driver.close()
    (step,) = only(Stepped, records)
    assert step.metrics["grad_norm"] == 0
    (done,) = only(Finished, records)
    assert done.metrics["sampling/importance_sampling_ratio/masked"] == 1
    (credited,) = only(Credited, records)
    assert credited.correction is not None
    assert not credited.correction.any()


def test_an_answer_without_a_gradient_is_still_read_by_the_policy(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the sampler's log-probabilities as the old ones, those of the policy are not known without a pass."""
    given = {"reward": "some_groups", "sampler_lag": 1, "old_logprobs_of": "sampler", "learning_rate": 1e-2}

    def ratios(run: str) -> Any:
        driver, records = start(run=run, algorithm="dr-grpo", **given)
        driver.advance("update", 2, lambda: False)
        driver.close()
        return only(Stepped, records)[-1].importance_ratio

    found = ratios("found.rlplay")
    monkeypatch.setattr("rlplay.engine.policy_gradient.without_gradient", lambda _, rows, *__: rows < 0)
    np.testing.assert_allclose(found, ratios("all.rlplay"), rtol=1e-3)
    assert (found != 1).mean() > 0.9
