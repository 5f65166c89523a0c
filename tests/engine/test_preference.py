"""Updates that learn from pairs: their records, labels and what they change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.engine.preference_pairs import simulated_labels
from rlplay.trace.codec import RECORDS
from rlplay.trace.lenses import LENSES
from rlplay.trace.records import AnyRecord, Finished, Sampled, Stepped
from tests.engine import pair_reference, reference
from tests.engine.conftest import FROM_ANSWERS, SMALL, one_of_each_kind
from tests.numbers import update_of

Start = Callable[..., Any]
IMITATIONS = ["sft", "dft"]
PAIR_LOSSES = [name for name in FROM_ANSWERS if name not in ("reward-model", *IMITATIONS)]
IMPROVES = {"simpo": "rewards/margins", "alphapo": "rewards/margins", "cpo": "nll_loss", "orpo": "log_odds_chosen"}
pytestmark = pytest.mark.usefixtures("opinionated")


def never() -> bool:
    return False


@pytest.mark.parametrize("algorithm", [*PAIR_LOSSES, *IMITATIONS])
def test_the_records_of_an_update_equal_the_reference(start: Start, algorithm: str) -> None:
    given = {"algorithm": algorithm, "num_prompts": 4, "learning_rate": 5e-3}
    driver, records = start(**given)
    driver.advance("update", 2, never)
    driver.close()
    update = update_of(records, 2)
    settings = resolve(SMALL | given)
    s = {name: getattr(settings, name) for name in settings.__struct_fields__}
    sampled, scored, credited, (step,) = update.sampled, update.scored, update.credited, update.steps
    assert sampled is not None
    assert scored is not None
    assert credited is not None
    assert sampled.group.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(scored.roles) == ["chosen"] * 4 + ["rejected"] * 4
    chosen = [i for i in range(8) if scored.roles[i] == "chosen"]
    rejected = [i for i in range(8) if scored.roles[i] == "rejected"]
    assert step.rows.tolist() == chosen + rejected
    lengths = np.diff(sampled.offsets)[step.rows]
    own = reference.split(step.logprobs, np.concatenate([[0], np.cumsum(lengths)]))
    ref: list[Any] = own
    if credited.ref_logprobs is not None:
        everyone = reference.split(credited.ref_logprobs, sampled.offsets)
        ref = [everyone[i] for i in step.rows]
    rows = list(zip(own, ref, strict=True))
    z = step.metrics.get("kto/kl", 0.0)
    weights = None
    if settings.use_weighting:
        everyone = reference.split(step.weights, np.concatenate([[0], np.cumsum(lengths)]))
        weights = np.array([row[0] for row in everyone[:4]])
        assert all(np.ptp(row) == 0 for row in everyone)
    loss, pulls = pair_reference.whole(settings.loss_type, rows[:4], rows[4:], s, z, weights)
    assert step.metrics["loss"] == pytest.approx(loss, abs=1e-5)
    np.testing.assert_allclose(step.dloss_dlogp, np.concatenate(pulls), atol=1e-5)
    np.testing.assert_allclose(
        LENSES["credit"].values(update)[np.concatenate([np.arange(*sampled.offsets[i : i + 2]) for i in step.rows])],
        -np.concatenate(pulls) * lengths.sum(), atol=1e-3,
    )  # fmt: skip
    np.testing.assert_allclose(credited.advantages, update.pull(), atol=1e-4)
    assert np.abs(step.importance_ratio - 1).max() < 1e-4
    if algorithm in IMITATIONS:
        assert step.margins is None
        return
    shared = 2 * [min(*pair) for pair in zip(lengths[:4], lengths[4:], strict=True)]
    rewards = [
        settings.beta * pair_reference.rewarded(settings.loss_type, *row, s, k)
        for row, k in zip(rows, shared, strict=True)
    ]
    np.testing.assert_allclose(step.margins, np.subtract(rewards[:4], rewards[4:]), atol=1e-5)
    assert step.metrics["rewards/margins"] == pytest.approx(np.mean(step.margins), abs=1e-5)
    implicit = reference.split(LENSES["implicit_reward"].values(update), sampled.offsets)
    if settings.alpha:  # tokens have shares of log p, which AlphaPO then bends
        rewards = [settings.beta * o.mean() for o, _ in rows]
    np.testing.assert_allclose([implicit[i].sum() for i in step.rows], rewards, atol=1e-5)


def test_ktos_baseline_is_the_log_ratio_of_answers_put_after_the_next_prompt(start: Start) -> None:
    """At the second step of a batch, when all answers have been raised, so that z is not cut off at 0."""
    driver, records = start(
        algorithm="kto", num_prompts=4, learning_rate=1e-3, num_iterations=2, undesirable_weight=0.0
    )
    driver.advance("step", 1, never)
    models = [copy.deepcopy(m).double() for m in (driver._state.lm.policy, driver._state.lm.reference)]
    driver.advance("step", 1, never)
    driver.close()
    update = update_of(records, 1)
    sampled, (first, second) = update.sampled, update.steps
    assert sampled is not None
    log_ratios = []
    for place, row in enumerate(second.rows.tolist()):
        half, pair = divmod(place, 4)
        next_row = second.rows[4 * half + (pair + 1) % 4]
        prompt = sampled.prompt_ids[slice(*sampled.prompt_offsets[sampled.group[next_row] :][:2])]
        answer = sampled.token_ids[slice(*sampled.offsets[row : row + 2])]
        ids = torch.from_numpy(np.concatenate([prompt, answer])).long()[None]
        with torch.no_grad():
            logits = [model(input_ids=ids).logits[0, len(prompt) - 1 : -1] for model in models]
        own, ref = (x.log_softmax(-1).gather(-1, ids[0, len(prompt) :, None]).sum() for x in logits)
        log_ratios.append(float(own - ref))
    assert first.metrics["kto/kl"] == pytest.approx(0, abs=1e-5), "policy and reference are equal but for rounding"
    assert second.metrics["kto/kl"] == pytest.approx(np.mean(log_ratios), abs=1e-4)
    assert second.metrics["kto/kl"] > 0.1


def test_wpos_weights_are_those_of_whole_answers(start: Start) -> None:
    """exp of the mean of log p − log Σ p² over an answer's tokens, of both answers of a pair multiplied."""
    driver, records = start(algorithm="wpo", num_prompts=4, learning_rate=1e-3, num_iterations=2)
    driver.advance("step", 1, never)
    model = copy.deepcopy(driver._state.lm.policy).double()
    driver.advance("step", 1, never)
    driver.close()
    update = update_of(records, 1)
    sampled, step = update.sampled, update.steps[1]
    assert sampled is not None
    weights = []
    for row in step.rows.tolist():
        prompt = sampled.prompt_ids[slice(*sampled.prompt_offsets[sampled.group[row] :][:2])]
        answer = torch.from_numpy(sampled.token_ids[slice(*sampled.offsets[row : row + 2])]).long()
        ids = torch.cat([torch.from_numpy(prompt).long(), answer])[None]
        with torch.no_grad():
            p = model(input_ids=ids).logits[0, len(prompt) - 1 : -1].softmax(-1)
        weights.append(float((p.gather(-1, answer[:, None])[:, 0] / (p**2).sum(-1)).log().mean().exp()))
    of_pairs = np.array(weights[:4]) * weights[4:]
    recorded = np.split(step.weights, np.cumsum(np.diff(sampled.offsets)[step.rows])[:-1])
    np.testing.assert_allclose([row[0] for row in recorded], [*of_pairs, *of_pairs], rtol=1e-4)
    assert np.ptp(of_pairs) > 0.01


def test_online_dpo_learns_from_answers_of_the_policy_itself(start: Start) -> None:
    texts = {}
    for name in ("dpo", "online-dpo"):
        driver, records = start(run=f"{name}.rlplay", algorithm=name, num_prompts=4, learning_rate=3e-2)
        driver.advance("update", 3, never)
        driver.close()
        texts[name] = [r.texts for r in records if isinstance(r, Sampled)]
    assert texts["dpo"][0] == texts["online-dpo"][0], "in the first update the policy is the reference"
    assert texts["dpo"][2] != texts["online-dpo"][2]


@pytest.mark.parametrize("algorithm", ["dpo", "ipo", "kto"])
def test_before_the_first_step_every_pair_is_a_tie(start: Start, algorithm: str) -> None:
    """The policy is the reference: no rounding between their passes decides which answer is ahead."""
    driver, records = start(algorithm=algorithm, num_prompts=4, num_minibatches=2, per_device_train_batch_size=3,
                            num_iterations=1, learning_rate=0.0)  # fmt: skip
    driver.advance("update", 2, never)
    driver.close()
    for step in (record for record in records if isinstance(record, Stepped)):
        assert step.margins is not None
        assert not step.margins.any()
        assert [step.metrics[f"rewards/{name}"] for name in ("accuracies", "chosen", "margins")] == [0.0] * 3
        assert step.metrics.get("kto/kl", 0.0) == 0
    for update in (1, 2):
        assert not LENSES["implicit_reward"].values(update_of(records, update)).any()


@pytest.mark.parametrize("algorithm", one_of_each_kind(PAIR_LOSSES))
def test_a_few_steps_on_the_same_pairs_widen_the_margin(start: Start, algorithm: str) -> None:
    driver, records = start(algorithm=algorithm, num_prompts=4, num_iterations=6, learning_rate=2e-3)
    driver.advance("update", 1, never)
    driver.close()
    steps = [r for r in records if isinstance(r, Stepped)]
    metric = IMPROVES.get(algorithm, "rewards/margins")
    first, last = steps[0].metrics[metric], steps[-1].metrics[metric]
    assert (last < first - 1e-3) if metric == "nll_loss" else (last > first + 1e-3)
    assert steps[-1].metrics["loss"] < steps[0].metrics["loss"]


def test_imitation_makes_the_chosen_answers_likelier_and_pulls_on_nothing_else(start: Start) -> None:
    driver, records = start(algorithm="sft", num_prompts=4, num_iterations=6, learning_rate=2e-3)
    driver.advance("update", 1, never)
    driver.close()
    steps = [r for r in records if isinstance(r, Stepped)]
    assert steps[-1].metrics["loss"] < steps[0].metrics["loss"] - 0.01
    update = update_of(records, 1)
    assert update.sampled is not None
    assert update.scored is not None
    rejected = [role == "rejected" for role in update.scored.roles]
    assert not update.pull()[np.repeat(rejected, np.diff(update.sampled.offsets))].any()  # type: ignore[index]


@pytest.mark.parametrize("split", [{}, {"num_minibatches": 2, "num_iterations": 2}])
def test_a_batch_too_large_for_one_graph_has_the_same_gradient(
    start: Start, monkeypatch: pytest.MonkeyPatch, split: dict[str, int]
) -> None:
    given = {"algorithm": "kto", "num_prompts": 4, "learning_rate": 5e-3, **split}
    driver, whole = start(**given)
    driver.advance("update", 2, never)
    monkeypatch.setattr("rlplay.engine.passes.LOGITS_AT_ONCE", 3 * 1024 * 10)
    other, pieces = start("other.rlplay", **given)
    other.advance("update", 2, never)
    for a, b in zip(*([r for r in rs if isinstance(r, Stepped)] for rs in (whole, pieces)), strict=True):
        assert a.metrics["grad_norm"] == pytest.approx(b.metrics["grad_norm"], rel=1e-3)
        np.testing.assert_allclose(a.dloss_dlogp, b.dloss_dlogp, atol=1e-5)


def _numbers(records: list[AnyRecord], number: int) -> list[bytes]:
    """An update's records but for those that the clock decides: looks at what is being sampled, timings."""
    kept = [r for r in records if r.update == number and not isinstance(r, Finished)]
    return [RECORDS.encode(r) for r in kept if not (isinstance(r, Sampled) and not r.done)]


def test_going_back_brings_the_same_pairs_labels_and_steps(start: Start) -> None:
    driver, records = start(algorithm="dpo", label_noise=0.3)
    driver.advance("update", 3, never)
    first = _numbers(records, 3)
    driver.rewind(1)
    del records[:]
    driver.advance("update", 2, never)
    assert _numbers(records, 3) == first
    assert len(first) == 4


def test_a_loss_is_exchanged_between_updates_and_never_within_one(start: Start) -> None:
    driver, records = start(algorithm="grpo")
    driver.advance("phase", 2, never)
    driver.set({"algorithm": "dpo"})
    assert driver.status().settings.loss_type == "sigmoid"
    driver.advance("update", 1, never)
    driver.advance("phase", 2, never)
    driver.set({"algorithm": "grpo"})
    driver.advance("update", 2, never)
    driver.close()
    other, undisturbed = start("other.rlplay", algorithm="grpo")
    other.advance("update", 1, never)
    other.set({"algorithm": "dpo"})
    other.advance("update", 1, never)
    other.set({"algorithm": "grpo"})
    other.advance("update", 1, never)
    steps = ([RECORDS.encode(r) for r in rs if isinstance(r, Stepped)] for rs in (records, undisturbed))
    assert next(steps) == next(steps)
    assert [len(r.group) for r in records if isinstance(r, Sampled) and r.done] == [12, 6, 12]


def test_the_labeller_errs_as_bradley_and_terry_say() -> None:
    judged = np.tile([0.2, 0.5], 4000)
    assert simulated_labels(judged, 0.0, 1, 1).all()
    assert simulated_labels(judged, 0.3, 1, 1).mean() == pytest.approx(1 / (1 + np.exp(-1)), abs=0.02)
    assert np.isnan(simulated_labels(np.zeros(8), 0.3, 1, 1)).all(), "who sees no difference does not toss a coin"
    np.testing.assert_array_equal(simulated_labels(judged, 0.3, 7, 2), simulated_labels(judged, 0.3, 7, 2))
    assert (simulated_labels(judged, 0.3, 7, 2) != simulated_labels(judged, 0.3, 7, 3)).any()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"algorithm": "dpo", "beta": 0}, "needs a beta above 0"),
        ({"algorithm": "cpo", "beta": 0, "cpo_alpha": 0}, "a beta or a cpo_alpha above 0"),
        ({"algorithm": "dpo", "num_prompts": 2, "num_minibatches": 3}, "more than the 2 pairs"),
        ({"algorithm": "kto", "num_prompts": 4, "num_minibatches": 3}, "2 prompts or more"),
        ({"algorithm": "robust-dpo", "label_smoothing": 0.5}, "from 0 to 0.49; got 0.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        resolve(given)
