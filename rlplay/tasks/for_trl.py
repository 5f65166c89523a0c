"""What an exported TRL script imports from rlplay: rows and reward functions as TRL's trainers expect them.

A row's `prompt` is text or chat messages, and answers have the same form.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rlplay.containment import OwnError
from rlplay.tasks.task import Example, RewardFunction, Steps, Task, heading, total
from rlplay.trace.pairs import pairs
from rlplay.trace.runfile import RunReader
from rlplay.trace.text import quote

Row = dict[str, Any]


def prompts(task: Task, least: int = 1) -> list[Row]:
    """Every training prompt with its columns, repeated up to `least` rows, because TRL drops an incomplete batch."""
    return _repeated(_questions(task.train), least)


def held_out(task: Task, most: int) -> list[Row]:
    """The first `most` held-out prompts with their columns."""
    return _questions(task.held_out[:most])


def given_answers(task: Task, least: int = 1) -> list[Row]:
    """Every training prompt with its own answers: `chosen`, and `rejected` and `margin` if it has them."""
    rows = [_row(e, e.chosen, e.rejected, e.columns) for e in task.train if e.chosen is not None]
    return _repeated(_with_margins(rows), least)


def recorded_answers(run: str | Path, task: Task, first: int, last: int) -> list[Row]:
    """The answers that updates `first` to `last` of a recorded run compared, in order.

    Raises OwnError, one line, if the task does not have their prompts.
    """
    known = {heading(example): example for example in task.train}
    rows = []
    with RunReader(run) as reader:
        for number in reader.detailed():
            for pair in pairs(reader.load(number)) if first <= number <= last else ():
                if pair.prompt not in known:
                    raise OwnError(
                        f"{run}: the task {task.name} has no prompt {quote(pair.prompt)}, which it learned from"
                    )
                rows.append(_row(known[pair.prompt], pair.chosen, pair.rejected, pair.columns))
    return _with_margins(rows)


def imitated(rows: Sequence[Row]) -> list[Row]:
    """Rows for SFTTrainer: the chosen answers alone."""
    return [{"prompt": row["prompt"], "completion": row["chosen"]} for row in rows]


def one_by_one(rows: Sequence[Row], pairs_at_once: int) -> list[Row]:
    """Rows for KTOTrainer, which takes good and bad answers instead of pairs.

    In each batch the chosen answers come first. TRL reads the answer before or after a row as an answer to the row's
    prompt; in this order it belongs to another prompt, as in rlplay.
    """
    found = []
    for start in range(0, len(rows), pairs_at_once):
        batch = rows[start : start + pairs_at_once]
        for side in ("chosen", "rejected"):
            found += [{"prompt": r["prompt"], "completion": r[side], "label": side == "chosen"} for r in batch]
    return found


def summed(function: RewardFunction) -> RewardFunction:
    """The same reward with one number per completion: the sum if it scores steps, since TRL has no step scores."""

    def totals(answers: Sequence[float | Steps | None]) -> list[float | None]:
        return [answer if answer is None else total(answer) for answer in answers]

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):

        @functools.wraps(function)
        async def later(**columns: Any) -> list[float | None]:
            found: Any = function(**columns)
            return totals(await found)

        return cast(RewardFunction, later)  # which TRL awaits

    @functools.wraps(function)
    def scores(**columns: Any) -> list[float | None]:
        return totals(function(**columns))

    return scores


def _questions(examples: Sequence[Example]) -> list[Row]:
    """Prompts with every column that any of them has."""
    names = sorted({name for example in examples for name in example.columns})
    return [{"prompt": e.prompt, **{name: e.columns.get(name) for name in names}} for e in examples]


def _row(example: Example, chosen: str | None, rejected: str | None, columns: dict[str, Any]) -> Row:
    texts = {"chosen": chosen, "rejected": rejected}
    answers = {side: _like(example, text) for side, text in texts.items() if text is not None}
    return {"prompt": example.prompt, **answers, "margin": float(columns.get("margin") or 0)}


def _with_margins(rows: list[Row]) -> list[Row]:
    """The rows without the column `margin` if every margin is 0."""
    if not any(row["margin"] for row in rows):
        for row in rows:
            del row["margin"]
    return rows


def _like(example: Example, text: str) -> str | list[dict[str, str]]:
    """An answer in the form of its prompt."""
    return text if isinstance(example.prompt, str) else [{"role": "assistant", "content": text}]


def _repeated(rows: list[Row], least: int) -> list[Row]:
    return list(itertools.islice(itertools.cycle(rows), max(least, len(rows))))
