"""Rows and rewards in the forms of TRL's trainers."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.containment import OwnError
from rlplay.tasks import for_trl, load_task
from rlplay.tasks.own_prompts import load_own, narrowed
from rlplay.tasks.task import heading
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.runfile import RunWriter
from tests.recorded import END, synthetic_started, synthetic_update

ASKED = [heading(example) for example in load_task("arithmetic").train[:4]]


def test_prompts_have_every_column_and_are_as_many_as_a_batch_needs(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text('{"prompt": "1+1=", "answer": 2}\n{"prompt": "2+2=", "hint": "even"}\n')
    rows = for_trl.prompts(load_own(path, {}), least=5)
    first, second = ({"prompt": "1+1=", "answer": 2, "hint": None}, {"prompt": "2+2=", "answer": None, "hint": "even"})
    assert rows == [first, second, first, second, first]


def test_held_out_prompts_are_none_of_those_trained_on() -> None:
    task = load_task("arithmetic")
    rows = for_trl.held_out(task, most=3)
    assert len(rows) == 3
    assert all(row["prompt"] not in [trained["prompt"] for trained in for_trl.prompts(task)] for row in rows)
    assert rows[0]["answer"] == task.held_out[0].columns["answer"]


def test_given_answers_have_the_form_of_their_prompts(tmp_path: Path) -> None:
    chat = for_trl.given_answers(load_task("questions"))[0]
    assert chat["prompt"][0]["role"] == "user"
    assert chat["chosen"][0].keys() == {"role", "content"}
    assert chat.keys() == {"prompt", "chosen"}
    path = tmp_path / "pairs.jsonl"
    path.write_text(
        '{"prompt": "p", "chosen": "good", "rejected": "bad", "margin": 2}\n'
        '{"prompt": "q", "chosen": "yes", "rejected": "no"}\n'
    )
    rows = for_trl.given_answers(load_own(path, {}))
    assert rows[0] == {"prompt": "p", "chosen": "good", "rejected": "bad", "margin": 2.0}
    assert rows[1]["margin"] == 0
    assert for_trl.imitated(rows)[1] == {"prompt": "q", "completion": "yes"}


def recorded(folder: Path) -> Path:
    """Two updates on sums; of each prompt's four answers the second is better than the first, the others left out."""
    writer = RunWriter.create(folder / "run.rlplay", synthetic_started())
    for number in (1, 2):
        sampled, scored, *_, finished = synthetic_update(number)
        assert isinstance(sampled, Sampled)
        assert isinstance(scored, Scored)
        cut = np.zeros(16, dtype=np.uint8)
        cut[0] = 1
        writer.append(msgspec.structs.replace(sampled, prompts=ASKED, truncated=cut))
        writer.append(msgspec.structs.replace(scored, roles=["rejected", "chosen", "", ""] * 4))
        writer.append(finished)
    writer.close()
    return writer.path


def test_recorded_answers_are_those_that_were_compared_without_their_ends(tmp_path: Path) -> None:
    task = load_task("arithmetic")
    rows = for_trl.recorded_answers(recorded(tmp_path), task, first=2, last=2)
    sampled = synthetic_update(2)[0]
    assert isinstance(sampled, Sampled)
    texts = ["".join(sampled.texts[a:b]) for a, b in zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)]
    assert len(rows) == 4
    assert [row["prompt"][0]["content"] for row in rows] == ASKED
    assert rows[0]["chosen"] == [{"role": "assistant", "content": texts[1].removesuffix(END)}]
    assert rows[0]["rejected"][0]["content"] == texts[0], "a cut answer has no end to leave out"
    assert texts[1].endswith(END)
    assert len(for_trl.recorded_answers(tmp_path / "run.rlplay", task, first=1, last=2)) == 8


def test_a_prompt_that_the_task_does_not_have_is_named(tmp_path: Path) -> None:
    task = narrowed(load_task("arithmetic"), ASKED[1:])
    with pytest.raises(OwnError, match=r"no prompt 'What is 2\+2\?'"):
        for_trl.recorded_answers(recorded(tmp_path), task, first=1, last=2)


def test_answers_one_by_one_stand_beside_those_to_other_prompts() -> None:
    rows = [{"prompt": str(n), "chosen": f"good {n}", "rejected": f"bad {n}"} for n in range(4)]
    found = for_trl.one_by_one(rows, pairs_at_once=2)
    assert [(row["prompt"], row["label"]) for row in found] == [
        ("0", True), ("1", True), ("0", False), ("1", False), ("2", True), ("3", True), ("2", False), ("3", False),
    ]  # fmt: skip
    assert found[2]["completion"] == "bad 0"


def test_scores_of_steps_become_their_sum() -> None:
    def graded(completions: list[str], **_: Any) -> list[Any]:
        """Steps, a number, nothing."""
        return [[(1, 0.5), (2, 0.25)], 1.0, None][: len(completions)]

    function = for_trl.summed(graded)
    assert function(completions=["a", "b", "c"], trainer_state=None) == [0.75, 1.0, None]
    assert function.__name__ == "graded"


def test_scores_that_are_awaited_become_their_sums_too() -> None:
    async def graded(completions: list[str], **_: Any) -> list[Any]:
        return [[(1, 0.5), (2, 0.25)], None][: len(completions)]

    class Graded:
        __name__ = "graded"

        async def __call__(self, completions: list[str], **_: Any) -> list[Any]:
            return await graded(completions)

    for function in (graded, Graded()):
        summed = for_trl.summed(function)  # type: ignore[arg-type]
        assert inspect.iscoroutinefunction(summed)
        assert asyncio.run(summed(completions=["a", "b"])) == [0.75, None]
