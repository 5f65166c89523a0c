"""An update's metrics, each once more from the records: what they count, over what, and where they do not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.engine import rollouts
from rlplay.engine.optimize import minibatches
from rlplay.engine.update_summary import reward_metrics
from rlplay.trace.answers import repeated
from rlplay.trace.metrics import describe
from rlplay.trace.records import Credited, Finished, Sampled, Scored, Stepped, spans
from rlplay.trace.update import Update
from tests.engine.conftest import FROM_ANSWERS, one_of_each_kind
from tests.engine.test_more_axes import records_of, updates
from tests.engine.test_process import batch_of

Start = Callable[..., Any]
MOVING = {"num_iterations": 3, "learning_rate": 1e-2}


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "ppo", "epsilon": 0.05, "epsilon_high": 0.3},
        {"algorithm": "grpo", "epsilon": 0.3, "epsilon_high": 0.02, "num_minibatches": 2},
        {"algorithm": "gspo", "epsilon": 1e-3, "epsilon_high": 2e-2},
        {"algorithm": "gmpo", "epsilon": 0.3, "epsilon_high": 0.05},
        {"algorithm": "gmpo", "epsilon": 0.02, "epsilon_high": 0.4},
    ],
)
def test_what_is_outside_the_band_is_outside_the_one_that_the_surrogate_has(
    start: Start, given: dict[str, Any]
) -> None:
    driver, records = updates(start, **MOVING | given)
    driver.close()
    settings, (sampled,) = resolve(given), records_of(Sampled, records)
    low, high = settings.clip_range
    seen = []
    for step in records_of(Stepped, records):
        log_ratio = step.logprobs.astype(np.float64) - sampled.old_logprobs[spans(sampled.offsets, step.rows)]
        if given["algorithm"] == "gmpo":
            outside = (log_ratio < -low) | (log_ratio > high)
        elif given["algorithm"] == "gspo":
            lengths = np.diff(sampled.offsets)[step.rows]
            ratio = np.array([np.exp(part.mean()) for part in np.split(log_ratio, np.cumsum(lengths)[:-1])])
            outside = (ratio < 1 - low) | (ratio > 1 + high)
        else:
            outside = (np.exp(log_ratio) < 1 - low) | (np.exp(log_ratio) > 1 + high)
        assert step.metrics["ratio_outside"] == pytest.approx(outside.mean(), abs=1e-6)
        assert step.metrics["ratio_outside"] >= step.metrics["clip_ratio/region_mean"] - 1e-6
        seen.append(outside.mean())
    assert max(seen) > 0.05


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "ppo", "epsilon": 0.02, "epsilon_high": 0.05, "delta": 1.06},
        {"algorithm": "grpo", "epsilon": 0.05, "beta": 0.1, "mask_truncated_completions": True, "num_minibatches": 2},
        {"algorithm": "cispo", "epsilon_high": 1.01, "beta": 0.1},
        {"algorithm": "gspo", "epsilon": 2e-3, "epsilon_high": 4e-3, "beta": 0.1, "kl_placement": "loss"},
        {"algorithm": "ppo-penalty"},
    ],
    ids=lambda given: given["algorithm"],
)
def test_the_numbers_of_a_step_are_counted_in_its_tokens(start: Start, given: dict[str, Any]) -> None:
    driver, records = updates(start, **MOVING | given)
    driver.close()
    (sampled,), (credited,) = records_of(Sampled, records), records_of(Credited, records)
    clipped, parts = set(), resolve(given).num_minibatches
    for number, step in enumerate(records_of(Stepped, records)):
        assert (step.step, step.epoch, step.minibatch) == (number, *divmod(number, parts))
        assert (step.epochs, step.minibatches) == (3, parts)
        tokens, lengths = spans(sampled.offsets, step.rows), np.diff(sampled.offsets)[step.rows]
        ended = np.repeat(sampled.truncated[step.rows] == 0, lengths)
        inside = ended if given.get("mask_truncated_completions") else np.ones(len(tokens), dtype=bool)
        counted, first = inside.copy(), np.cumsum(lengths) - lengths
        if given["algorithm"] == "gspo":  # one ratio per answer
            counted[np.setdiff1d(np.arange(len(tokens)), first)] = False
        state, ratio = step.clip_state[counted], step.importance_ratio[counted]
        wanted = {
            "clip_ratio/low_mean": (state == -1).mean(),
            "clip_ratio/high_mean": (state == 1).mean(),
            "clip_ratio/region_mean": (np.abs(state) == 1).mean(),
            "ratio_max": ratio.max(),
        }
        if given["algorithm"] == "ppo":
            wanted["clip_ratio/delta_mean"] = (state == 2).mean()
        if given["algorithm"] == "cispo":
            wanted["cispo_clip_ratio"] = ((ratio > 1.01) & (credited.advantages[tokens][counted] > 0)).mean()
        if step.kl is not None:
            wanted["kl_penalty" if given["algorithm"] == "ppo-penalty" else "kl"] = step.kl[inside].mean()
        assert {name: step.metrics[name] for name in wanted} == pytest.approx(wanted, abs=1e-6)
        clipped |= {name for name, share in wanted.items() if share}
    assert len(clipped) == len(wanted) - (3 if given["algorithm"] in ("ppo-penalty", "cispo") else 0), clipped


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("given", [{"beta": 0.1}, {"beta": 0.1, "kl_placement": "reward", "num_minibatches": 3}])
def test_the_numbers_of_an_update_are_counted_in_its_records(start: Start, given: dict[str, Any]) -> None:
    given |= {"num_prompts": 4, "num_generations": 3, "lr_scheduler_type": "linear"}
    driver, records = updates(start, 2, algorithm="grpo", reward="choosy+seldom+some_groups", **MOVING | given)
    driver.close()
    kinds = (Sampled, Scored, Credited, Finished)
    for sampled, scored, credited, finished in zip(*(records_of(kind, records) for kind in kinds), strict=True):
        steps = [step for step in records_of(Stepped, records) if step.update == finished.update]
        lengths, rewards = np.diff(sampled.offsets), scored.rewards
        gap = credited.ref_logprobs.astype(np.float64) - sampled.old_logprobs
        moved = finished.logprobs.astype(np.float64) - sampled.old_logprobs
        answers = [tuple(ids) for ids in np.split(sampled.token_ids, sampled.offsets[1:-1])]
        flat = [np.ptp(rewards[sampled.group == g][~np.isnan(rewards[sampled.group == g])]) == 0 for g in range(4)]
        wanted = {
            "reward": np.nanmean(rewards), "reward_std": np.nanstd(rewards, ddof=1),
            "frac_reward_zero_std": np.mean(flat),
            "gold/correct/mean": np.mean(scored.gold["correct"]),
            "completions/mean_length": lengths.mean(), "completions/min_length": lengths.min(),
            "completions/max_length": lengths.max(), "completions/clipped_ratio": sampled.truncated.mean(),
            "completions/distinct": len(set(zip(sampled.group, answers, strict=True))) / 4,
            "entropy": sampled.entropy.mean(), "kl_old": (np.exp(moved) - moved - 1).mean(),
            "ratio_max": max(step.importance_ratio.max() for step in steps),
            "learning_rate": steps[-1].metrics["learning_rate"],
            "grad_norm": np.mean([step.metrics["grad_norm"] for step in steps]),
            "loss": np.mean([step.metrics["loss"] for step in steps]),
        }  # fmt: skip
        wanted["kl"] = (
            (np.exp(gap) - gap - 1).mean() if "kl_placement" in given else np.mean([step.kl.mean() for step in steps])
        )
        for name, part in scored.parts.items():
            wanted |= {f"rewards/{name}/mean": np.nanmean(part), f"rewards/{name}/std": np.nanstd(part, ddof=1)}
        found = {name: value for name, value in finished.metrics.items() if name in wanted}
        assert found == pytest.approx(wanted, rel=1e-4, abs=1e-6)


def test_a_group_is_without_signal_if_its_known_rewards_are_equal() -> None:
    unknown = np.nan
    rewards = np.array([0.4, unknown, 0.4, 0.4, 0.0, unknown, 1.0, 1.0, 0.4, unknown, unknown, unknown, *[unknown] * 4])
    batch = batch_of([(1, {}, reward) for reward in rewards])
    scored = Scored(update=1, rewards=rewards, parts={}, weights={}, gold={})
    found = reward_metrics(scored, batch, "")
    wanted = {"reward": 3.6 / 7, "reward_std": np.nanstd(rewards, ddof=1), "frac_reward_zero_std": 3 / 4}
    wanted |= {"reward_p10": 0.6 * 0.4, "reward_p90": 1.0}  # of 0 .4 .4 .4 .4 1 1, at the places .6 and 5.4
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_zieglers_beta_follows_the_mean_kl_of_the_tokens_that_were_sampled(start: Start, estimator: str) -> None:
    given = {"algorithm": "rlhf-ppo", "kl_ctrl": "ziegler", "kl_estimator": estimator, "kl_horizon": 100, "beta": 0.1}

    def played(run: str, **more: Any) -> list[Finished]:
        driver, records = start(run, **given, **more)
        with torch.no_grad():
            for parameter in driver._state.lm.policy.parameters():
                parameter.mul_(1.3)
        driver.advance("update", 2, lambda: False)
        driver.close()
        (sampled, *_), (credited, *_) = records_of(Sampled, records), records_of(Credited, records)
        x = (credited.ref_logprobs - sampled.old_logprobs).astype(np.float64)[sampled.mask == 1]
        kl = float(np.mean(-x if estimator == "k1" else np.expm1(x) - x))
        finished = records_of(Finished, records)
        assert finished[0].metrics["kl"] == pytest.approx(kl, rel=1e-4)
        return finished

    kl = played("first.rlplay")[0].metrics["kl"]
    assert kl > 0.01
    betas = [each.metrics["kl_coef"] for each in played("second.rlplay", target_kl=kl / 1.1)]
    answers = len(played("third.rlplay", target_kl=kl)[0].rows)
    assert betas == [0.1, pytest.approx(0.1 * (1 + 0.1 * answers / 100), rel=1e-4)]


def test_what_reward_functions_log_is_a_metric_also_of_held_out_prompts() -> None:
    nobody = np.zeros(4)
    scored = Scored(update=1, rewards=nobody, parts={}, weights={}, gold={}, logged={"called": 3.0})
    batch = batch_of([(1, {}, 0.0)] * 4, 2)
    assert reward_metrics(scored, batch, "")["called"] == 3.0
    assert reward_metrics(scored, batch, "eval_")["eval_called"] == 3.0


def test_a_score_has_a_mean_of_the_answers_it_was_given_for_and_none_without_any() -> None:
    some, nothing = np.array([1.0, np.nan, 0.0, 0.5]), np.full(4, np.nan)
    scores = {"some": some, "nothing": nothing}
    scored = Scored(update=1, rewards=some, parts=scores, weights={}, gold=scores)
    batch = batch_of([(1, {}, 0.0)] * 4, 2)
    for prefix in ("", "eval_"):
        found = reward_metrics(scored, batch, prefix)
        wanted = {"reward": 0.5, "rewards/some/mean": 0.5, "rewards/some/std": 0.5, "gold/some/mean": 0.5}
        assert {name: found[prefix + name] for name in wanted} == pytest.approx(wanted)
        assert not any("nothing" in name for name in found)


def test_a_task_that_is_no_world_may_be_small_enough_to_be_surveyed(start: Start) -> None:
    driver, records = start()
    state = driver._state
    examples, actions = state.task.train[:3], state.lm.tokenizer.convert_ids_to_tokens([5, 9])
    state.task = msgspec.structs.replace(
        state.task, situations={str(n): example for n, example in enumerate(examples)}, actions=actions
    )
    driver.advance("update", 1, lambda: False)
    driver.close()
    (finished,) = records_of(Finished, records)
    assert finished.survey.states == ["0", "1", "2"]
    for row, example in zip(finished.survey.logprobs, examples, strict=True):
        with torch.no_grad():
            logits = state.lm.policy(input_ids=torch.tensor([state.lm.prompt_ids(example)])).logits[0, -1]
        np.testing.assert_allclose(row, logits.log_softmax(-1)[[5, 9]], atol=1e-5)


def test_predictions_that_are_all_off_by_the_same_leave_no_variance_unexplained(start: Start) -> None:
    driver, records = updates(start, 1, algorithm="a2c", reward="same", gamma=1.0, lam=1.0)
    driver.close()
    assert np.ptp(records_of(Credited, records)[0].returns) == 0
    assert records_of(Finished, records)[0].metrics["explained_variance"] == pytest.approx(1, abs=1e-3)


def test_an_answer_without_siblings_is_no_group() -> None:
    rewards = np.array([0.4, 0.7, 0.7])
    scored = Scored(update=1, rewards=rewards, parts={}, weights={}, gold={})
    answers = [(1, {}, reward) for reward in rewards]
    assert "frac_reward_zero_std" not in reward_metrics(scored, batch_of(answers, 1), "")
    assert reward_metrics(scored, batch_of(answers, 2), "")["frac_reward_zero_std"] == 0, "of the one group of two"


@pytest.mark.parametrize("algorithm", ["cispo", "sapo", "vespo", "reinforce", "ppo-penalty", "trpo", "rloo"])
def test_only_a_surrogate_with_a_band_counts_what_is_outside_it(start: Start, algorithm: str) -> None:
    driver, records = updates(start, algorithm=algorithm)
    driver.close()
    has_band = resolve({"algorithm": algorithm}).surrogate == "ppo"
    assert ("ratio_outside" in records_of(Finished, records)[0].metrics) == has_band
    row = describe("ratio_outside")
    assert row is not None
    assert "[1 − ε, 1 + ε_high]" in row.formula
    assert "[−ε, ε_high]" in row.formula


@pytest.mark.parametrize("algorithm", one_of_each_kind(FROM_ANSWERS))
def test_answers_that_the_policy_did_not_sample_are_no_estimate_of_its_kl(start: Start, algorithm: str) -> None:
    driver, records = updates(start, 2, algorithm=algorithm, num_prompts=4, kl_ctrl="ppo", target_kl=1e-4)
    driver.close()
    for finished in records_of(Finished, records):
        assert "kl_old" not in finished.metrics
        assert "kl" not in finished.metrics
    assert driver._state.kl_coef == driver._state.settings.beta


def test_the_numbers_of_the_steps_come_in_their_order_in_every_process(start: Start) -> None:
    driver, records = updates(start, algorithm="ppo", num_minibatches=2)
    driver.close()
    step, finished = records_of(Stepped, records)[0], records_of(Finished, records)[0]
    assert [name for name in finished.metrics if name in step.metrics] == list(step.metrics)


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_different_answers_are_counted_for_each_prompt(start: Start, temperature: float) -> None:
    driver, records = updates(start, temperature=temperature, num_prompts=2, num_generations=4)
    driver.close()
    (sampled,), (finished,) = records_of(Sampled, records), records_of(Finished, records)
    update = Update(1)
    update.add(sampled)
    again = repeated(update, range(len(sampled.group)))
    assert finished.metrics["completions/distinct"] == (8 - len(again)) / 2


def test_explained_variance_is_what_is_left_of_the_returns_variance(start: Start) -> None:
    driver, records = updates(start, 3, algorithm="a2c", learning_rate=2e-2, num_generations=8)
    driver.close()
    found = []
    for credited, finished in zip(records_of(Credited, records), records_of(Finished, records), strict=True):
        returns, values = credited.returns.astype(np.float64), credited.values.astype(np.float64)
        wanted = 1 - np.var(returns - values, ddof=1) / np.var(returns, ddof=1)
        assert finished.metrics["explained_variance"] == pytest.approx(wanted, abs=1e-4)
        found.append(wanted)
    assert max(np.abs(found)) > 0.01


def test_zieglers_controller_goes_by_the_drift_from_the_reference_not_by_the_last_step(start: Start) -> None:
    given = {"algorithm": "grpo", "beta": 0.1, "kl_ctrl": "ziegler", "target_kl": 1e-2, "kl_horizon": 100}
    driver, records = updates(start, 4, num_iterations=2, learning_rate=1e-2, **given)
    driver.close()
    beta, errors = 0.1, []
    for sampled, credited, finished in zip(
        *(records_of(kind, records) for kind in (Sampled, Credited, Finished)), strict=True
    ):
        assert finished.metrics["kl_coef"] == pytest.approx(beta)
        gap = credited.ref_logprobs.astype(np.float64) - sampled.old_logprobs
        errors.append(float(np.clip((np.exp(gap) - gap - 1).mean() / 1e-2 - 1, -0.2, 0.2)))
        beta *= 1 + errors[-1] * 12 / 100
    assert errors[0] == -0.2  # nothing has moved yet, however far the first update then goes
    assert records_of(Finished, records)[0].metrics["kl_old"] > 1.2e-2
    assert errors[-1] == 0.2


def test_tokens_of_groups_that_were_dropped_were_sampled_too(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    sampled, answers = [], rollouts._answers

    def counted(*given: Any) -> Any:
        batch = yield from answers(*given)
        sampled.append(int(batch.mask.sum()))
        return batch

    monkeypatch.setattr(rollouts, "_answers", counted)
    driver, records = updates(start, 3, reward="seldom", dynamic_sampling=True, num_prompts=4)
    driver.close()
    last = records_of(Finished, records)[-1]
    kept = sum(int(r.mask.sum()) for r in records_of(Sampled, records))
    assert last.metrics["num_tokens"] == sum(sampled) > kept


def test_the_optimizer_steps_go_through_the_minibatches_of_their_pass(start: Start) -> None:
    driver, records = updates(start, 2, num_iterations=3, num_minibatches=2, num_prompts=4)
    driver.close()
    seen = []
    for step in records_of(Stepped, records):
        parts = minibatches(len(step.rows) * 2, 2, 0, step.update, step.epoch)
        assert step.rows.tolist() == parts[step.minibatch].tolist()
        seen.append((step.update, step.epoch, step.minibatch, step.step))
    assert seen == [(update, step // 2, step % 2, step) for update in (1, 2) for step in range(6)]


def test_every_pass_over_a_batch_has_minibatches_of_its_own() -> None:
    def drawn(update: int, epoch: int) -> list[list[int]]:
        return [part.tolist() for part in minibatches(12, 3, 7, update, epoch)]

    assert drawn(1, 0) == drawn(1, 0)
    assert len({str(drawn(update, epoch)) for update in (1, 2) for epoch in (0, 1, 2)}) == 6
    for epoch in range(3):
        assert sorted(item for part in drawn(1, epoch) for item in part) == list(range(12))
