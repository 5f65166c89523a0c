"""What other settings would have made of a batch is what they make of it when they are set in time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import asdict

from rlplay.engine.batch import Batch
from rlplay.engine.driver import Driver
from rlplay.engine.score import score
from rlplay.engine.state import Halt, State
from rlplay.link.messages import EVENTS
from rlplay.scenario.schema import Stage
from rlplay.trace.questions import Imagined
from rlplay.trace.records import AnyRecord, Credited, Scored, Stepped
from rlplay.trace.update import Update
from tests.numbers import update_of

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
SLOW = {"learning_rate": 1e-2}


def go(start: Start, until: str = "update", count: int = 1, **given: Any) -> tuple[Driver, Update]:
    driver, records = start(**SLOW | given)
    driver.advance(until, count, lambda: False)  # type: ignore[arg-type]
    return driver, update_of(records)


def laid_out(update: Update, steps: list[Stepped], field: str) -> Any:
    copy = Update(update.number)
    assert update.sampled is not None
    copy.add(update.sampled)
    for step in steps:
        copy.add(step)
    return copy.latest_step(field)


FIELDS = ("importance_ratio", "clip_state", "dloss_dlogp", "weights", "left_out")


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "grpo", "beta": 0.1, "num_iterations": 2, "num_minibatches": 2},
        {"algorithm": "ppo", "num_iterations": 2},
        {"algorithm": "ppo", "num_iterations": 3, "entropy_coef": 0.1, "learning_rate": 1e-2},
        {"algorithm": "dapo", "mask_truncated_completions": True, "top_entropy_quantile": 0.5},
    ],
)
def test_unchanged_settings_give_what_the_last_steps_recorded(start: Start, given: dict[str, Any]) -> None:
    driver, update = go(start, **given)
    imagined = driver.what_if({})
    assert imagined.update == 1
    assert imagined.held == []
    assert imagined.losses is not None
    assert imagined.losses[0] == pytest.approx(imagined.losses[1], abs=1e-7)
    last = [step.metrics["loss"] for step in update.steps if step.epoch == update.steps[-1].epoch]
    assert imagined.losses[0] == pytest.approx(np.mean(last), abs=1e-6)
    for steps in (imagined.before, imagined.after):
        for field in FIELDS:
            np.testing.assert_allclose(
                laid_out(update, steps, field), update.latest_step(field), atol=1e-6, rtol=1e-5, err_msg=field
            )
    assert update.credited is not None
    assert imagined.credited is not None
    np.testing.assert_allclose(imagined.credited.advantages, update.credited.advantages, atol=1e-6)
    driver.close()


CHANGES: list[dict[str, Any]] = [
    {"algorithm": "dr-grpo"},
    {"algorithm": "cispo", "num_minibatches": 1},
    {"baseline": "leave_one_out", "scale_rewards": "none"},
    {"beta": 0.3, "kl_placement": "reward", "kl_estimator": "k1", "returns": "to_go", "gamma": 0.9},
    {"beta": 0.3, "importance_sampling_level": "sequence", "aggregation": "token_mean"},
    {"surrogate": "vespo", "off_policy_mask_threshold": 0.01, "overlong_buffer": 6, "top_entropy_quantile": 0.3},
]


def test_it_is_what_the_same_answers_give_under_those_settings_from_the_start(start: Start) -> None:
    """Before the first step both are at the log-probabilities of sampling, so the numbers have to be the same."""
    driver, records = start(**SLOW)
    begun = asdict(driver.status().settings)
    for changes in CHANGES:
        driver.set(begun)
        driver.advance("phase", 3, lambda: False)
        imagined = driver.what_if(changes)
        driver.rewind(0)
        driver.set(changes)
        driver.advance("update", 1, lambda: False)
        update = update_of(records)
        driver.rewind(0)
        assert update.credited is not None
        assert imagined.credited is not None
        for field in ("token_rewards", "returns", "baseline", "advantages"):
            ours, theirs = getattr(imagined.credited, field), getattr(update.credited, field)
            np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=f"{field} {changes}")
        for field in FIELDS:
            ours, theirs = laid_out(update, imagined.after, field), getattr(update.steps[0], field)
            np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=f"{field} {changes}")
        assert imagined.losses is not None
        assert imagined.losses[1] == pytest.approx(update.steps[0].metrics["loss"], abs=1e-5)
    driver.close()


CORRECTIONS: list[dict[str, Any]] = [
    {"algorithm": "icepop", "importance_sampling_clip_max": 1.05, "importance_sampling_clip_min": 0.9},
    {"surrogate": "vespo", "importance_sampling_mode": "token_truncate", "off_policy_mask_threshold": 0.0},
    {"rollout_rs": "token_k2", "rollout_rs_threshold": 0.001},
]


def test_a_correction_is_what_it_would_have_been(start: Start) -> None:
    """The sampler is one update behind, and the second update is looked at before its first step."""
    driver, records = start(sampler_lag=1, learning_rate=3e-3, num_minibatches=1)
    begun = asdict(driver.status().settings)
    for changes in CORRECTIONS:
        driver.advance("phase", 8, lambda: False)
        imagined = driver.what_if(changes)
        driver.rewind(1)
        driver.set(changes)
        driver.advance("update", 1, lambda: False)
        update = update_of(records, 2)
        driver.rewind(0)
        driver.set(begun)
        assert update.credited is not None
        assert imagined.credited is not None
        assert imagined.credited.correction_rule == update.credited.correction_rule
        ours, theirs = imagined.credited.correction, update.credited.correction
        if ours is not None or theirs is not None:
            np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), atol=1e-6)
        for field in FIELDS:
            found, taken = laid_out(update, imagined.after, field), getattr(update.steps[0], field)
            np.testing.assert_allclose(found, taken, atol=1e-5, err_msg=f"{field} {changes}")
        left_out = update.steps[0].left_out
        assert left_out is not None
        assert changes.get("surrogate") == "vespo" or 0 < (left_out == 4).sum() < len(left_out)
    driver.close()


def test_the_loss_has_the_critics_error_and_the_entropy_bonus_in_it_as_the_formula_does(start: Start) -> None:
    driver, records = start(algorithm="ppo", num_iterations=1, num_minibatches=1, vf_coef=0.5, **SLOW)
    driver.advance("update", 2, lambda: False)
    update = update_of(records, 2)
    (step,), credited = update.steps, update.credited
    assert credited is not None
    assert credited.values is not None
    for changes in ({}, {"lam": 0.5}, {"gamma": 0.7}):
        imagined = driver.what_if(changes)
        assert imagined.credited is not None
        assert imagined.losses is not None
        gap = credited.values - imagined.credited.returns.astype(np.float64)  # type: ignore[union-attr]
        error = 0.5 * (gap**2).mean()
        policy = -imagined.credited.advantages.mean()  # every ratio is 1
        assert imagined.losses == pytest.approx((step.metrics["loss"], policy + 0.5 * error), abs=1e-6)
        assert error > 1e-3
    driver.close()
    driver, update = go(start, run="grpo.rlplay", algorithm="grpo")
    loss, entropy = update.steps[0].metrics["loss"], update.finished.metrics["entropy"]  # type: ignore[union-attr]
    assert driver.what_if({"entropy_coef": 0.1}).losses == pytest.approx((loss, loss - 0.1 * entropy), abs=1e-6)
    driver.close()
    driver, _ = go(start, run="steps.rlplay", algorithm="grpo", num_iterations=2)
    with pytest.raises(ValueError, match="an entropy bonus needs a forward pass"):
        driver.what_if({"entropy_coef": 0.1})
    driver.close()


def test_a_tighter_clip_is_previewed_at_the_last_steps_log_probabilities(start: Start) -> None:
    driver, update = go(start, num_iterations=3)
    recorded, ratio = update.latest_step("clip_state"), update.latest_step("importance_ratio")
    assert recorded is not None
    assert ratio is not None
    assert update.credited is not None
    advantages = update.credited.advantages
    new = laid_out(update, driver.what_if({"epsilon": 0.02, "epsilon_high": 0.02}).after, "clip_state")
    np.testing.assert_array_equal(new == 1, (advantages > 0) & (ratio > 1.02))
    np.testing.assert_array_equal(new == -1, (advantages < 0) & (ratio < 0.98))
    assert (new != 0).sum() > (recorded != 0).sum()
    driver.close()


def test_asking_changes_nothing(start: Start) -> None:
    plain, records = start(**SLOW)
    plain.advance("update", 2, lambda: False)
    curious, others = start(run="other.rlplay", **SLOW)
    curious.advance("phase", 3, lambda: False)
    curious.what_if({"algorithm": "rloo"})
    curious.advance("update", 1, lambda: False)
    curious.what_if({"beta": 1.0})
    curious.advance("update", 1, lambda: False)
    first, second = update_of(records, 2), update_of(others, 2)
    np.testing.assert_array_equal(first.pull(), second.pull())
    kinds = [[type(record) for record in played if getattr(record, "done", True)] for played in (records, others)]
    assert kinds[0] == kinds[1]
    plain.close()
    curious.close()


def test_what_shows_only_with_new_samples_or_steps_is_left_out_and_named(start: Start) -> None:
    driver, update = go(start)
    imagined = driver.what_if({"algorithm": "dapo", "temperature": 0.5, "learning_rate": 1.0})
    assert {"temperature", "learning_rate", "dynamic_sampling", "num_minibatches"} == set(imagined.held)
    assert update.sampled is not None
    weight = 1 / len(update.sampled.token_ids)
    np.testing.assert_allclose(imagined.after[0].weights, weight, rtol=1e-5)
    driver.close()


def test_what_the_batch_cannot_tell_is_refused_with_the_reason(start: Start) -> None:
    driver, _ = go(start)
    for changes, reason in (
        ({"algorithm": "ppo"}, "value head's predictions"),
        ({"algorithm": "remax"}, "greedy answer to each prompt"),
        ({"algorithm": "vineppo"}, "continued from each step or turn"),
        ({"kl_estimator": "full", "beta": 0.1}, "forward pass"),
        ({"kl_estimator": "full", "beta": 0.1, "kl_placement": "reward"}, "forward pass"),
        ({"returns": "gae"}, "GAE bootstraps"),
        ({"epsilon": "wide"}, "epsilon is a number from 0 to 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            driver.what_if(changes)
    driver.close()


def test_rewards_are_weighted_anew_where_they_are_known(start: Start) -> None:
    driver, update = go(start, reward="uneven+seldom", reward_weights={"uneven": 1.0, "seldom": 0.5})
    imagined = driver.what_if({"reward_weights": {"uneven": 0.0, "seldom": 2.0}})
    assert update.scored is not None
    assert update.sampled is not None
    assert imagined.credited is not None
    ends = update.sampled.offsets[1:] - 1
    np.testing.assert_allclose(imagined.credited.token_rewards[ends], 2 * update.scored.parts["seldom"], atol=1e-6)
    driver.close()
    driver, _ = go(start, run="other.rlplay", reward="uneven+seldom", reward_weights={"uneven": 1.0, "seldom": 0.0})
    with pytest.raises(ValueError, match="'seldom' had no weight when"):
        driver.what_if({"reward_weights": {"uneven": 1.0, "seldom": 1.0}})
    driver.close()


def test_the_last_answers_with_credit_stay_at_hand(start: Start) -> None:
    driver, update = go(start)
    before = driver.what_if({"epsilon": 0.1})
    driver.advance("token", 1, lambda: False)
    sampling = driver.what_if({"epsilon": 0.1})
    driver.advance("phase", 2, lambda: False)
    scored = driver.what_if({"epsilon": 0.1})
    driver.advance("update", 1, lambda: False)
    assert driver.what_if({"epsilon": 0.1}).update == 2
    driver.rewind(1)
    undone = driver.what_if({"epsilon": 0.1})
    for other in (sampling, scored, undone):
        assert other.update == update.number == 1
        for one, two in zip(before.after, other.after, strict=True):
            assert np.array_equal(one.dloss_dlogp, two.dloss_dlogp)
    driver.close()


def test_a_preview_after_an_undo_changes_nothing(start: Start) -> None:
    def played(run: str, asks: bool) -> list[AnyRecord]:
        driver, records = start(run=run, **SLOW)
        driver.advance("update", 2, lambda: False)
        driver.rewind(1)
        if asks:
            told = len(records)
            driver.what_if({"epsilon": 0.1})
            assert len(records) == told, "what is sampled once more is not recorded"
        driver.advance("update", 1, lambda: False)
        driver.close()
        return records

    one, two = (
        next(each for each in reversed(played(run, asks)) if isinstance(each, Stepped))
        for run, asks in (("asked.rlplay", True), ("not.rlplay", False))
    )
    assert np.array_equal(one.logprobs, two.logprobs)


@pytest.mark.parametrize("fails", [False, True])
def test_rewards_that_are_others_each_time_or_fail_cost_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    driver, _ = go(start, count=2)
    driver.rewind(1)
    before = {name: weight.detach().clone() for name, weight in driver._state.parameters.items()}

    def moody(batch: Batch, state: State) -> Scored:
        if fails:
            raise Halt("the judge is away")
        scored = score(batch, state)
        assert batch.rewards is not None
        batch.rewards = batch.rewards.flip(0)
        return scored

    monkeypatch.setattr("rlplay.engine.loop.score", moody)
    with pytest.raises(Halt, match="away") if fails else nullcontext():
        driver.what_if({"epsilon": 0.1})
    monkeypatch.undo()
    assert all(torch.equal(before[name], weight) for name, weight in driver._state.parameters.items())
    driver.advance("update", 1, lambda: False)
    assert driver.status().update == 2
    driver.close()


def test_an_update_without_rewards_is_not_repeated_for_a_preview(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, _ = go(start, algorithm="dpo")
    driver.advance("update", 1, lambda: False)
    driver.rewind(1)
    monkeypatch.setattr(Driver, "_repeat", None)
    with pytest.raises(ValueError, match="loss_type=policy_gradient"):
        driver.what_if({"epsilon": 0.1})
    monkeypatch.undo()
    driver.close()


def test_pairs_of_an_earlier_stage_are_not_taken_for_rewarded_answers(start: Start) -> None:
    stages = [Stage("pairs", 1, {"algorithm": "dpo"}), Stage("rewards", 1, {"algorithm": "grpo"})]
    driver, _ = start(scenario={"stages": stages})
    driver.advance("update", 1, lambda: False)
    with pytest.raises(ValueError, match="with its first update"):
        driver.what_if({"epsilon": 0.1})
    driver.close()


def test_before_there_is_credit_and_after_a_rewind_to_the_start_there_is_nothing_to_tell(start: Start) -> None:
    driver, _ = go(start, "phase", 2)
    with pytest.raises(ValueError, match="no credit yet"):
        driver.what_if({"epsilon": 0.1})
    driver.advance("update", 1, lambda: False)
    driver.what_if({"epsilon": 0.1})
    driver.rewind(0)
    with pytest.raises(ValueError, match="no answers until the next update"):
        driver.what_if({"epsilon": 0.1})
    driver.close()


def test_the_answer_passes_the_wire(start: Start) -> None:
    driver, _ = go(start)
    imagined = driver.what_if({"algorithm": "rloo", "beta": 0.1})
    back = EVENTS.decode(EVENTS.encode(imagined))
    assert isinstance(back, Imagined)
    assert isinstance(back.credited, Credited)
    np.testing.assert_array_equal(back.after[0].dloss_dlogp, imagined.after[0].dloss_dlogp)
    driver.close()
