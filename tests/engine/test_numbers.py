"""What the engine records, against the float64 reference: every preset, every number of the loss."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from msgspec.structs import asdict
from transformers import AutoTokenizer

from rlplay.algorithms.apply import resolve
from rlplay.engine.reasoning import step_ends
from rlplay.paths import POCKET_PATH
from rlplay.trace.update import Update
from tests.engine import reference
from tests.engine.conftest import FROM_REWARDS, SMALL
from tests.numbers import update_of

TOLERANCE = 1e-5

STEPS = {"reward": "halves+seldom"}
CASES: list[dict[str, Any]] = [{"algorithm": name} for name in FROM_REWARDS] + [
    {"algorithm": "grpo", "beta": 0.2, "num_iterations": 3, "epsilon": 0.05},
    {"algorithm": "grpo", "beta": 0.2, "kl_estimator": "k1", "use_bias_correction_kl": False, "num_minibatches": 2},
    {"algorithm": "grpo", "beta": 0.2, "kl_estimator": "k2", "scale_rewards": "batch", "aggregation": "token_mean"},
    {"algorithm": "rlhf-ppo", "beta": 0.1, "gamma": 0.9, "lam": 0.8, "learning_rate": 1e-2},
    {"algorithm": "ppo", "epsilon": 0.02, "epsilon_high": 0.05, "cliprange_value": 0.01, "learning_rate": 1e-2},
    {"algorithm": "ppo", "epsilon": 0.1, "delta": 1.15, "learning_rate": 2e-2},
    {"algorithm": "dr-grpo", "temperature": 0.7, "num_iterations": 2},
    {"algorithm": "gdpo", "reward": "uneven+seldom", "reward_weights": {"uneven": 0.3, "seldom": 2.0}},
    {"algorithm": "reinforce", "gamma": 0.9, "kl_placement": "reward", "beta": 0.3},
    {"algorithm": "reinforce", "returns": "to_go", "baseline": "value", "gamma": 0.95, "num_iterations": 2},
    {"algorithm": "vineppo", "gamma": 0.9, "vine_samples": 3, "max_completion_length": 30},
    {"algorithm": "grpo-process", **STEPS},
    {"algorithm": "grpo-process", "reward": "halves"},
    {"algorithm": "reinforce", "reward_stream": "process", "gamma": 0.9, **STEPS},
    {"algorithm": "reinforce", "reward_stream": "shaping", "gamma": 0.9, **STEPS},
    {"algorithm": "dapo", "reward": "seldom", "num_iterations": 3, "learning_rate": 1e-2},
    {"algorithm": "gspo", "num_iterations": 3, "epsilon": 0.01, "epsilon_high": 0.02},
    {"algorithm": "gspo", "num_iterations": 3, "learning_rate": 1e-2, "beta": 0.1, "kl_placement": "loss"},
    {"algorithm": "rloo", "num_iterations": 3, "learning_rate": 3e-3},
    {"algorithm": "gmpo", "num_iterations": 3, "epsilon": 0.05, "learning_rate": 1e-2},
    {"algorithm": "cispo", "num_iterations": 3, "epsilon_high": 1.05, "learning_rate": 1e-2},
    {"algorithm": "dppo", "num_iterations": 3, "epsilon": 0.01, "epsilon_high": 0.02, "learning_rate": 1e-2},
    {"algorithm": "dppo", "surrogate": "dppo_kl", "num_iterations": 3, "epsilon": 1e-4, "epsilon_high": 2e-4,
     "learning_rate": 1e-2},
    {"algorithm": "dppo", "num_iterations": 3, "epsilon": 0.02, "delta": 1.02, "learning_rate": 1e-2},
    {"algorithm": "dppo", "surrogate": "tv_mask", "num_iterations": 3, "epsilon": 0.01, "learning_rate": 1e-2},
    {"algorithm": "sapo", "num_iterations": 3, "learning_rate": 1e-2},
    {"algorithm": "vespo", "num_iterations": 3, "learning_rate": 1e-3},
    {"algorithm": "ppo-penalty", "kl_estimator": "k2", "learning_rate": 1e-2},
    {"algorithm": "maxrl", "reward": "seldom"},
    {"algorithm": "clip-cov", "clip_cov_ratio": 0.1, "clip_cov_lb": 0.1, "num_iterations": 2, "learning_rate": 1e-2},
    {"algorithm": "clip-cov", "clip_cov_ratio": 0.2, "clip_cov_lb": 0.0, "top_entropy_quantile": 0.6},
    {"algorithm": "kl-cov", "kl_cov_ratio": 0.1, "num_iterations": 2, "learning_rate": 1e-2},
    {"algorithm": "grpo", "surrogate": "dro", "dro_beta": 0.7, "num_iterations": 2, "learning_rate": 1e-2},
    {"algorithm": "pass-at-k", "reward": "seldom"},
    {"algorithm": "rloo", "scale_rewards": "answers", "reward_clip_min": 0.3, "reward_clip_max": 0.6},
    {"algorithm": "reinforce", "scale_rewards": "answers", "gamma": 0.9},
    {"algorithm": "grpo", "mask_truncated_completions": True, "num_iterations": 2, "beta": 0.1},
    {"algorithm": "dapo", "mask_truncated_completions": True, "top_entropy_quantile": 0.4, "num_minibatches": 2},
    {"algorithm": "grpo", "off_policy_mask_threshold": 0.001, "num_iterations": 4, "learning_rate": 1e-2},
]  # fmt: skip


def _update(start: Callable[..., Any], given: dict[str, Any]) -> Update:
    driver, records = start(**given)
    driver.advance("update", 2, lambda: False)
    driver.close()
    return update_of(records, 2)


def _steps(update: Update) -> tuple[reference.Rows, reference.Rows]:
    """What `halves` gave to each half, on the tokens that complete them."""
    sampled = update.sampled
    assert sampled is not None
    tokenizer = AutoTokenizer.from_pretrained(POCKET_PATH)
    steps, ends = [], []
    for a, b in pairwise(sampled.offsets):
        ids, texts = sampled.token_ids[a:b], sampled.texts[a:b]
        special = [i in tokenizer.all_special_ids for i in ids]
        reached = np.cumsum([0 if s else len(text) for s, text in zip(special, texts, strict=True)])
        n = len(tokenizer.decode(ids, skip_special_tokens=True))
        row, end = np.zeros(b - a), np.zeros(b - a)
        for place, value in ((n // 2, n % 3 / 2), (n, ids.sum() % 5 / 5)):
            t = next((t for t, r in enumerate(reached) if r >= place), b - a - 1)
            row[t] += value
            end[t] = 1
        steps.append(row)
        ends.append(end)
    return steps, ends


def _kept(update: Update, rows: Any, settings: dict[str, Any]) -> tuple[reference.Rows, Any]:
    """The tokens whose surrogate counts, and the completions that are in the loss."""
    sampled = update.sampled
    assert sampled is not None
    entropy = reference.split(sampled.entropy, sampled.offsets)
    kept = 1 - sampled.truncated[rows] if settings["mask_truncated_completions"] else np.ones(len(rows))
    every = np.concatenate([entropy[i] for i, k in zip(rows, kept, strict=True) if k] or [np.zeros(1)])
    bar = np.quantile(every.astype(np.float32), 1 - settings["top_entropy_quantile"])
    return [(entropy[i] >= bar - 1e-7).astype(float) for i in rows], kept


@pytest.mark.parametrize("given", CASES, ids=lambda g: " ".join(f"{k}={v}" for k, v in g.items()))
def test_every_number_of_an_update_equals_the_reference(start: Callable[..., Any], given: dict[str, Any]) -> None:
    update = _update(start, given)
    settings = asdict(resolve(SMALL | {name: value for name, value in given.items() if name != "reward"}))
    sampled, scored, credited = update.sampled, update.scored, update.credited
    assert sampled is not None
    assert scored is not None
    assert credited is not None
    assert credited.ref_logprobs is not None
    offsets = sampled.offsets
    old, ref = (reference.split(a, offsets) for a in (sampled.old_logprobs, credited.ref_logprobs))
    values = None if credited.values is None else reference.split(credited.values, offsets)
    none = [np.zeros(len(row)) for row in old]
    steps, ends = _steps(update) if "halves" in given.get("reward", "") else (none, [row.copy() for row in none])

    rewards = reference.combined(scored.rewards, scored.parts, scored.weights, sampled.group, settings)
    if "halves" in given.get("reward", "") and settings["reward_stream"] != "outcome":  # `seldom` scores the whole
        rewards = scored.parts.get("seldom", np.full(len(rewards), np.nan))
    stream = reference.token_rewards(rewards, steps, ends, old, ref, sampled.group, settings)
    np.testing.assert_allclose(credited.token_rewards, np.concatenate(stream), atol=TOLERANCE)
    greedy = {g: credited.baseline[offsets[i]] for i, g in enumerate(sampled.group)}
    cuts = [step_ends(["" if text == "<|end|>" else text for text in sampled.texts[a:b]]) for a, b in pairwise(offsets)]
    expected = reference.advantages(stream, values, greedy, sampled.group, settings, cuts)
    np.testing.assert_allclose(credited.advantages, np.concatenate(expected), atol=1e-4, rtol=TOLERANCE)

    assert np.ptp(credited.advantages) > 0.1

    advantages = reference.split(credited.advantages, offsets)
    returns = reference.split(credited.returns, offsets)
    assert len(update.steps) == settings["num_iterations"] * settings["num_minibatches"]
    for step in update.steps:
        lengths = np.diff(offsets)[step.rows]
        own = reference.split(step.logprobs, np.concatenate([[0], np.cumsum(lengths)]))
        keep, kept = _kept(update, step.rows, settings)
        read = own, *([rows[i] for i in step.rows] for rows in (old, ref, advantages)), settings
        place = [0, update.number, step.step]
        in_clip, held = reference.by_covariance(read[0], read[1], read[3], settings, place, kept)
        both = [one * other for one, other in zip(keep, in_clip, strict=True)]
        loss, pull, ratio, state = reference.loss_and_pull(*read, step.metrics.get("kl_coef"), both, kept, held)
        inside = np.repeat(kept, lengths) > 0
        np.testing.assert_allclose(
            step.importance_ratio[inside], np.concatenate(ratio)[inside], atol=TOLERANCE, rtol=TOLERANCE
        )
        np.testing.assert_array_equal(step.clip_state, np.concatenate(state))
        np.testing.assert_allclose(step.dloss_dlogp, np.concatenate(pull), atol=TOLERANCE, rtol=1e-4)
        once = settings["importance_sampling_level"] in ("sequence", "sequence_sum")
        counted = [row[:1] if once else row for row, k in zip(state, kept, strict=True) if k]
        clipped = (np.abs(np.concatenate(counted)) == 1).mean()
        np.testing.assert_allclose(step.metrics["clip_ratio/region_mean"], clipped, atol=1e-6)
        if step.dkl_dlogp is not None:
            of_kl = np.concatenate(pull) - np.concatenate(reference.loss_and_pull(*read, 0.0, both, kept)[1])
            np.testing.assert_allclose(step.dkl_dlogp, of_kl, atol=TOLERANCE, rtol=1e-4)
            beta = step.metrics.get("kl_coef", settings["beta"])
            policy = step.metrics["loss"] - settings["vf_coef"] * step.metrics.get("value_loss", 0.0)
            of_kl = beta * (step.weights * step.kl).sum()
            np.testing.assert_allclose(step.metrics["policy_loss"] + of_kl, policy, atol=TOLERANCE)
        off_policy = np.concatenate([
            (a < 0) & ((o - p).mean() > (settings["off_policy_mask_threshold"] or np.inf))
            for p, o, a in zip(own, *([rows[i] for i in step.rows] for rows in (old, advantages)), strict=True)
        ])  # fmt: skip
        out = [~inside, np.concatenate(keep) == 0, np.concatenate(in_clip) == 0, off_policy]
        reasons = np.select(out, [1, 2, 5, 3])
        np.testing.assert_array_equal(step.left_out, reasons)
        if step.values is not None and values is not None:
            now = reference.split(step.values, np.concatenate([[0], np.cumsum(lengths)]))
            error = reference.value_loss(
                now, [values[i] for i in step.rows], [returns[i] for i in step.rows], settings["cliprange_value"]
            )
            np.testing.assert_allclose(step.metrics["value_loss"], error, rtol=1e-4, atol=TOLERANCE)
            loss += settings["vf_coef"] * error
        np.testing.assert_allclose(step.metrics["loss"], loss, atol=TOLERANCE, rtol=TOLERANCE)
        if step.kl is not None:
            r, p, w, o = (
                np.concatenate(rows) for rows in ([ref[i] for i in step.rows], own, ratio, [old[i] for i in step.rows])
            )
            if settings["kl_anchor"] == "old":
                term = reference.kl(settings["kl_estimator"], p, o) * np.concatenate(held)
            else:
                term = reference.kl(settings["kl_estimator"], r, p) * (w if settings["use_bias_correction_kl"] else 1)
            np.testing.assert_allclose(step.kl[inside], term[inside], atol=TOLERANCE)


def test_the_first_step_has_ratio_one_and_the_metrics_are_the_means_of_the_tokens(start: Callable[..., Any]) -> None:
    update = _update(start, {"algorithm": "grpo", "num_iterations": 2})
    sampled, finished = update.sampled, update.finished
    assert sampled is not None
    assert finished is not None
    assert np.abs(update.steps[0].importance_ratio - 1).max() < 1e-4
    assert np.abs(update.steps[1].importance_ratio - 1).max() > 1e-4
    assert finished.metrics["entropy"] == pytest.approx(sampled.entropy.mean(), abs=1e-6)
    assert finished.metrics["completions/mean_length"] == pytest.approx(np.diff(sampled.offsets).mean())
    new = update.new_logprobs()
    assert new is not None
    w = np.exp(np.float64(new) - sampled.old_logprobs)
    assert finished.metrics["kl_old"] == pytest.approx((w - np.log(w) - 1).mean(), abs=1e-6)
