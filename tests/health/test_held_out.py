"""Prompts kept out of training: whether learning carries over to them, and whether they are kept out at all."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.health import held_out_checks as held_out
from rlplay.health.examine import findings, verdicts
from rlplay.health.finding import Evidence
from rlplay.health.given_answers import given_answers
from rlplay.health.health_of_run import examine_run
from rlplay.health.prompt_numbers import prompt_keys, row_key, row_keys
from rlplay.trace.evaluations import Course, LearningCourses
from tests.health.evidence import evidence, seen_at
from tests.recorded import synthetic_run, synthetic_update

HEART = {"reward": [0.0, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0], "eval_reward": [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2]}


def test_a_policy_that_learns_its_prompts_by_heart() -> None:
    found = held_out.memorised(evidence(7, HEART))
    assert found is not None
    assert found.evidence == (
        "From update 1 to 7 the reward on the prompts of training rose by 0.8, to 0.9. On held-out prompts it went "
        "from 0.1 to 0.2."
    )
    assert (found.settings, seen_at(found)) == (("beta",), (7, "example"))
    spread = {"reward_std": [1.0] * 7, "eval_reward_std": [0.95] * 7}
    assert held_out.memorised(evidence(7, HEART | spread)) is not None, "0.8 is twice 0.398, the noise"
    assert held_out.memorised(evidence(7, HEART | {"eval_reward_std": [1.97] * 7})) is None
    few = [0.0, 0.8, 0.8, 0.8]
    assert held_out.memorised(evidence(4, {"reward": few, "eval_reward": [0.0, 0.0, 0.0, 0.0]})) is not None
    for series in (
        {"eval_reward": [0.1]}, {"reward": [0.0, 0.5, 1.0]}, {"eval_reward": [0.0] * 6 + [0.21]},
        {"eval_reward": [0.95] * 7}, {"reward": [5.0, 5.1, 5.2, 5.3, 5.4, 5.5, 5.6]},
        {"reward_std": [9.0] * 7},
    ):  # fmt: skip
        assert held_out.memorised(evidence(7, HEART | series)) is None, series


def _known(run: Evidence, prompts: int, learned: int = 1) -> Evidence:
    """A run with as many held-out prompts; `learned` of them are right from the second evaluation on."""
    each = [Course(f"P{n}", {"answer": n}, [0.0, *[float(n < learned)] * 2], [], "never", None) for n in range(prompts)]
    return dataclasses.replace(run, held_out=LearningCourses([1, 4, 7], 0.5, each))


def test_few_prompts_do_not_show_memorising() -> None:
    run = evidence(7, HEART)
    assert held_out.memorised(_known(run, 11)) is None
    found = held_out.memorised(_known(run, 40))
    assert found is not None
    assert "On 40 held-out prompts it went from 0.1 to 0.2." in found.evidence
    assert held_out.memorised(_known(run, 40, 12)) is None, "a third of them may be half of what training gained"


def test_held_out_prompts_that_are_trained_on() -> None:
    same = frozenset(row_key(f"P{n}", {"answer": n}) for n in range(20))
    run = _known(evidence(7, {"eval_reward": [0.1] * 7}, prompts=same), 40)
    found = held_out.leaked(run)
    assert found is not None
    assert found.evidence.startswith("20 of the 40 held-out prompts, with the same columns")
    assert [each.name for each in findings(run)] == ["leaked"]
    other = frozenset(row_key(f"P{n}", {"answer": n + 1}) for n in range(40))
    for prompts in (other, frozenset(list(same)[:19]), frozenset()):
        assert held_out.leaked(_known(evidence(7, prompts=prompts), 40)) is None
    few = _known(evidence(7, {"eval_reward": [0.1] * 7}, prompts=frozenset(list(same)[:1])), 40)
    said = next(each for each in verdicts(few, []) if each.title == "Held-out reward")
    assert (said.ticked, said.text) == (False, "1 of the 40 held-out prompts are prompts of training")


def test_one_prompt_in_all_groups() -> None:
    one, rows = frozenset({1}), frozenset({1})
    found = held_out.one_prompt(evidence(3, prompt_texts=one, prompts=rows))
    assert found is not None
    assert found.evidence == "In 3 updates all 12 groups have the same prompt."
    dropped = held_out.one_prompt(evidence(3, prompt_texts=one, prompts=frozenset({1, 2, 3})))
    assert dropped is not None
    assert "there are 3 different rows" in dropped.evidence
    for run in (
        evidence(2, prompt_texts=one, groups=6), evidence(3, prompt_texts=frozenset({1, 2})),
        evidence(9, prompt_texts=one, groups=3), evidence(3, prompt_texts=one, walks=True), evidence(3),
        evidence(3, prompt_texts=one, prompts=frozenset({1, 2}), episodes=True),
    ):  # fmt: skip
        assert held_out.one_prompt(run) is None


def test_prompts_are_told_apart_as_the_model_reads_them() -> None:
    sampled = synthetic_update(1, prompts=3, generations=2)[0]
    assert len(row_keys(sampled)) == len(prompt_keys(sampled)) == 3
    start, end = sampled.prompt_offsets[:2]
    first = sampled.prompt_ids[start:end]
    same = msgspec.structs.replace(
        sampled, prompt_ids=np.tile(first, 3), prompt_offsets=np.arange(4, dtype=np.int64) * len(first)
    )
    assert len(prompt_keys(same)) == 1, "a template that drops what differs"
    words = msgspec.structs.replace(same, prompt_offsets=np.zeros(4, dtype=np.int64))
    assert len(prompt_keys(words)) == 3


def test_a_recorded_run_brings_its_held_out_prompts(tmp_path: Path) -> None:
    run, _ = examine_run(synthetic_run(tmp_path / "run.rlplay"))
    assert run is not None
    assert run.held_out is not None
    assert run.held_out.courses


def given(prompt: str = "What is {0}+{0}? Answer {1}.", answer: Callable[[int], int] = lambda n: 2 * n) -> Evidence:
    """Four rows in each of four updates; their prompts are made of a number and the row's answer."""
    sampled = synthetic_update(1, prompts=4, generations=2)[0]
    rows = []
    for update in range(4):
        numbers = [100 + 4 * update + n for n in range(4)]
        prompts, columns = [prompt.format(n, answer(n)) for n in numbers], [{"Answer": answer(n)} for n in numbers]
        if "\n" in prompt:  # the lines stand in another order each time
            prompts = ["\n".join(random.Random(text).sample(lines := text.split("\n"), len(lines))) for text in prompts]
        rows.append(msgspec.structs.replace(sampled, prompts=prompts, columns=columns))
    return evidence(4, given=list(map(given_answers, rows)), prompts=list(map(row_keys, rows)))


def test_an_answer_that_a_template_puts_into_the_prompt() -> None:
    found = held_out.given(given())
    assert found is not None
    assert found.evidence == (
        "16 of 16 prompts contain the value of their column “Answer”, 16 of them after “? answer ”. The value of "
        "another row stands in 0 of 16."
    )
    for prompt, place in (
        ("{1} {0} {0}?", "at the beginning"),
        ("{0} {0} {1}", "at the end"),
        ("{1}<-", "before “<-”"),
    ):
        found = held_out.given(given(prompt))
        assert found is not None
        assert place in found.evidence


@pytest.mark.parametrize(
    "how",
    [
        ("What is {0}+{0}?",),
        ("Is {0} even: 0, or 1?", lambda n: n % 2),  # another row's stands there, too
        ("- 7{0}\n- {1}\n- {0}\n- {0}3",),  # one of several to choose from
    ],
)
def test_no_alarm_about_answers_in_prompts(how: tuple[Any, ...]) -> None:
    assert held_out.given(given(*how)) is None


def test_few_rows_show_no_template() -> None:
    run = given()
    assert held_out.given(dataclasses.replace(run, digests=run.digests[:2])) is None
