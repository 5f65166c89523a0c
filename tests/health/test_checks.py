"""Each check on records made by hand: it fires on its disease, with the number that shows it, and on nothing else."""

from __future__ import annotations

from typing import get_args

import msgspec
import numpy as np
import pytest

from rlplay.health.digest import digest
from rlplay.health.examine import CHECKS, findings, verdicts
from rlplay.health.finding import Problem
from rlplay.health.health_of_run import Health
from rlplay.trace.records import Credited, Finished, Sampled, Scored, Stepped, Survey
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from tests.recorded import SETTINGS, synthetic_started, synthetic_update

CHOSEN = SETTINGS
STATED = msgspec.structs.asdict(SETTINGS)


def records(number, **fields):
    """The records of an update; `fields` maps the name of a record to its changed fields, or a function of it."""
    kinds = {"sampled": Sampled, "scored": Scored, "credited": Credited, "stepped": Stepped, "finished": Finished}
    found = []
    for record in synthetic_update(number, seed=number):
        changes = next(
            (fields[name] for name, kind in kinds.items() if name in fields and isinstance(record, kind)), {}
        )
        found.append(msgspec.structs.replace(record, **(changes(record) if callable(changes) else changes)))
    return found


def examined(updates=6, settings=STATED, ends=None, **fields):
    """The findings of a run whose updates all have these fields."""
    health = Health(run := Run())
    run.add(synthetic_started(ends=ends or {}))
    for number in range(1, updates + 1):
        update = Update(number)
        for record in records(number, **fields):
            update.add(record)
            health.run.history.add(record)
        health.add(update)
    return health.findings(updates, settings)


def metrics(**values):
    """A change of a finished record: these metrics besides its own."""
    return lambda record: {"metrics": {**record.metrics, **{n.replace("__", "/"): v for n, v in values.items()}}}


def everywhere(value):
    return lambda record: {"rewards": np.full_like(record.rewards, value)}


def by_length(record):
    return {"rewards": np.arange(len(record.rewards), dtype=np.float64)}


def moved(factor):
    """New log-probabilities that are lower by a factor everywhere."""
    return lambda record: {"logprobs": record.logprobs + np.float32(np.log(factor))}


def test_a_healthy_run_has_no_finding():
    assert examined(finished=moved(1.0)) == []


def test_steps_that_are_too_large_name_the_learning_rate():
    first = examined(finished=moved(1e-3))[0]
    assert first.name == "step too large"
    assert f"The learning rate {CHOSEN.learning_rate:g} is" in first.cause
    logged = records(1)[-1].metrics["learning_rate"]
    unknown = {"algorithm": "grpo"}
    assert f"The learning rate {logged:g} is" in examined(settings=unknown, finished=moved(1e-3))[0].cause
    stated = examined(settings={"learning_rate": 0.5}, finished=moved(1e-3))
    assert "The learning rate 0.5 is" in stated[0].cause, "whatever else is on record"
    unlogged = examined(settings=unknown, finished=lambda record: {**moved(1e-3)(record), "metrics": {}})
    assert "The learning rate is" in unlogged[0].cause
    assert first.settings == ("learning_rate",)
    assert first.place is not None


def test_the_probability_moved_is_the_total_variation():
    """By hand: half the sum over the vocabulary of |new - old|, on average over tokens drawn from the old policy."""
    rng = np.random.default_rng(0)
    old, new = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5))
    exact = np.abs(new - old).sum() / 2
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    assert update.sampled is not None
    assert update.finished is not None
    draws = rng.choice(5, size=len(update.sampled.token_ids), p=old)
    update.add(msgspec.structs.replace(update.sampled, old_logprobs=np.log(old[draws]), mask=np.ones_like(draws)))
    update.add(msgspec.structs.replace(update.finished, logprobs=np.log(new[draws])))
    by_draws = np.maximum(0, 1 - new[draws] / old[draws]).mean()
    assert digest(update).shift == pytest.approx(by_draws, rel=1e-5)
    many = rng.choice(5, size=200_000, p=old)
    assert np.maximum(0, 1 - new[many] / old[many]).mean() == pytest.approx(exact, abs=0.01)


def test_one_reward_for_all_is_the_cause_and_not_that_every_advantage_is_0():
    flat = {"advantages": np.zeros_like}
    found = examined(
        scored=everywhere(0.0),
        credited=lambda record: {"advantages": flat["advantages"](record.advantages)},
        finished=lambda record: metrics(reward=0.0, frac_reward_zero_std=1.0)(record) | moved(1.0)(record),
    )
    assert [finding.name for finding in found] == ["same reward"]
    assert "All 96 answers of 6 updates earned 0" in found[0].evidence
    assert len(found[0].examples) == 3


def numbered(record):
    """Every answer holds its row's id, and only the first one the solution."""
    texts = [" ." for _ in record.texts]
    for answer, (start, group) in enumerate(zip(record.offsets[:-1], record.group, strict=True)):
        texts[start] = f"id{group} " + "right0 " * (answer == 0)
    columns = [{"id": f"id{group}", "solution": f"right{group}"} for group in range(len(record.prompts))]
    return {"texts": texts, "columns": columns}


def test_the_column_with_the_answer_counts_and_not_a_row_s_number_that_more_answers_hold():
    found = examined(sampled=numbered, scored=everywhere(0.0))
    assert "6 of them contain the value of their column “solution”" in found[0].evidence


def apart(gap):
    """A sampler in another program, whose log-probabilities are off by `gap`, up and down in turn."""

    def off(record):
        signs = 1 - 2 * (np.arange(len(record.mask)) % 2)
        return {"sampling_logprobs": record.old_logprobs + np.float32(gap) * signs}

    return off


def test_a_sampler_in_another_program_may_be_off_by_its_precision():
    assert "mismatch" not in [finding.name for finding in examined(sampled=apart(0.1))], "a KL of 0.005"
    (found,) = [finding for finding in examined(sampled=apart(0.3)) if finding.name == "mismatch"]
    assert "a KL of 0.0455 nats per token." in found.evidence
    assert [f.name for f in examined(stepped=moved(np.exp(-0.1)))][:1] == ["mismatch"], "the same program has no excuse"


def test_a_sampler_that_disagrees():
    found = examined(stepped=moved(0.8))
    assert found[0].name == "mismatch"
    assert found[0].place is not None


def test_answers_that_never_end_name_the_mark_and_the_end_token():
    def endless(record):
        texts = list(record.texts)
        for start in record.offsets[:-1]:
            texts[start + 1] = "<|end|>"
        return {"truncated": np.ones_like(record.truncated), "texts": texts}

    first = examined(sampled=endless, ends={7: "</s>"})[0]
    assert first.name == "no end"
    assert "<|end|>" in first.cause
    assert "</s> (id 7)" in first.evidence


def cut(record, answers=16):
    """The first answers are cut; the n-th of all answers has n characters."""
    texts = [""] * len(record.texts)
    for answer, start in enumerate(record.offsets[:-1]):
        texts[start] = "x" * (answer + 1)
    return {"texts": texts, "truncated": (np.arange(16) < answers).astype(np.uint8)}


def test_a_reward_that_pays_for_length_is_found_where_every_answer_is_cut():
    found = {finding.name: finding for finding in examined(sampled=cut, scored=by_length, finished=moved(1.0))}
    assert "In 100.0 % of 120 pairs of answers to the same prompt, the longer one (in characters)" in (
        found["length"].evidence
    )


def test_an_answer_that_earns_less_for_being_cut_is_not_compared_by_its_length():
    def half_cut(record):
        return cut(record) | {"truncated": np.tile([1, 1, 0, 0], 4).astype(np.uint8)}

    def for_the_end(record):
        return {"rewards": np.tile([0.0, 0.0, 1.0, 1.0], 4)}

    assert "length" not in [finding.name for finding in examined(sampled=half_cut, scored=for_the_end)]


def one_group(record):
    return {"group": np.zeros_like(record.group)}


def silent(record):
    return {"advantages": np.zeros_like(record.advantages)}


def by_prompt(record):
    return {"rewards": np.arange(16) // 4 + 0.0 * record.rewards}


def flat_groups(record):
    return metrics(reward=0.5, frac_reward_zero_std=1.0)(record) | moved(1.0)(record)


def test_cut_answers_come_first_only_where_they_earn_less():
    def names(scored):
        found = examined(sampled=lambda record: cut(record, 8), scored=scored, credited=silent, finished=flat_groups)
        return [finding.name for finding in found]

    assert names(by_prompt) == ["truncated", "no signal"], "the first eight earn 0 or 1, the others 2 or 3"
    assert names(lambda record: {"rewards": 3.0 - by_prompt(record)["rewards"]}) == ["no signal", "truncated"]


def test_a_check_that_passes_says_nothing_to_the_contrary():
    health = Health(Run())
    update = Update(1)
    for record in records(1, sampled=cut, scored=by_prompt, credited=silent, finished=flat_groups):
        update.add(record)
        health.run.history.add(record)
    health.add(update)
    run = health.evidence(1, STATED)
    fine = [each.title for each in verdicts(run, findings(run))]
    assert "End of answers" not in fine
    assert "Signal" not in fine


def test_marks_of_another_model_s_template():
    def foreign(record):
        pieces = ["<", "|im_start|", ">", "user"]
        count = len(record.prompts)
        return {
            "prompt_texts": pieces * count,
            "prompt_ids": np.zeros(4 * count, dtype=np.int32),
            "prompt_offsets": np.arange(0, 4 * count + 1, 4),
        }

    first = examined(sampled=foreign)[0]
    assert first.name == "template"
    assert "<|im_start|> into 3 pieces" in first.evidence


def test_answers_that_repeat_themselves():
    def looping(record):
        return {"token_ids": np.full_like(record.token_ids, record.token_ids[0])}

    def walking(record):
        moves = Survey(states=["a1"], actions=["→"], logprobs=np.zeros((1, 1), dtype=np.float32), values=None)
        return looping(record) | {"survey": moves}

    assert "repetition" in [finding.name for finding in examined(sampled=looping, finished=moved(1.0))]
    assert "repetition" not in [finding.name for finding in examined(sampled=walking, finished=moved(1.0))]


def test_every_problem_has_a_check_and_explains_only_problems_that_have_one():
    names = {check.name for check in CHECKS}
    assert names == {*get_args(Problem)}
    for check in CHECKS:
        assert check.explains <= names - {check.name}, check.name


def test_pairs_have_no_rewards_to_judge():
    assert examined(settings={**STATED, "loss_type": "sigmoid"}, scored=everywhere(0.0)) == []
