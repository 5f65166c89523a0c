"""The rows of the list of teachers: groups by how near they are, equal answers together, then earlier updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rlplay.trace.answers import alike
from rlplay.trace.records import Array
from rlplay.trace.teachers import Taught
from rlplay.trace.teachers_by_answer import Teacher, TeacherGroup, teachers_by_answer
from rlplay.trace.update import Update

TITLES = {
    "same answer": "This answer",
    "same prompt": "Other answers to this prompt",
    "other prompts": "Answers to other prompts",
    "earlier updates": "Earlier updates, through the optimizer's momentum",
}


@dataclass(frozen=True)
class GroupRow:
    """The heading of a group, and what it adds up to."""

    title: str
    total: float


@dataclass(frozen=True)
class AnswerRow:
    """Equal answers to one prompt: what they did together, nats; the first, and its strongest token in the batch."""

    total: float
    completions: tuple[int, ...]
    token: int
    share: float
    pull: float
    """The credit of the strongest token: + is praise, − is blame; NaN if unknown."""


@dataclass(frozen=True)
class UpdatesRow:
    """What the updates after `since` up to `update` still did."""

    total: float
    since: int
    update: int


@dataclass(frozen=True)
class MoreRow:
    """Answers of a group that did hardly anything, together."""

    total: float
    answers: int


Row = GroupRow | AnswerRow | UpdatesRow | MoreRow
_SLIGHT = 0.01
"""Answers below this part of the largest share of any are left out, if there are several."""


def teacher_rows(taught: Taught, update: Update, completion: int | None) -> list[Row]:
    """All teachers in the shares of `update`, nearest first; `completion` is the answer that the target is from."""
    pull, forms, groups = update.pull(), alike(update), teachers_by_answer(taught, update, completion)
    least = _SLIGHT * max((abs(each.total) for group in groups for each in group.teachers), default=0.0)
    rows: list[Row] = []
    for group in groups:
        rows.append(GroupRow(TITLES[group.nearness], group.total))
        if group.nearness == "earlier updates":
            rows += [UpdatesRow(each.total, each.since, each.update) for each in group.teachers]
        else:
            answers = _answers(group, pull, forms)
            slight = [each for each in answers if abs(each.total) < least]
            rows += answers[: len(answers) - len(slight)] if len(slight) > 1 else answers
            if len(slight) > 1:
                count = sum(len(each.completions) for each in slight)
                rows.append(MoreRow(sum(each.total for each in slight), count))
    return rows


def _answers(group: TeacherGroup, pull: Array | None, forms: list[int]) -> list[AnswerRow]:
    together: dict[tuple[int, bool], list[Teacher]] = {}
    for each in group.teachers:
        assert each.completion is not None
        together.setdefault((forms[each.completion], each.total > 0), []).append(each)
    return sorted((_row(each, pull) for each in together.values()), key=lambda row: -abs(row.total))


def _row(teachers: list[Teacher], pull: Array | None) -> AnswerRow:
    first = teachers[0]
    assert first.token is not None
    credit = np.nan if pull is None else float(pull[first.token])
    completions = tuple(each.completion for each in teachers if each.completion is not None)
    return AnswerRow(sum(each.total for each in teachers), completions, first.token, first.share, credit)


def strongest(rows: list[Row], lowest: bool) -> Iterator[int]:
    """The places of the rows that raised the target most, or lowered it most, in order."""
    sign = -1 if lowest else 1
    found = [at for at, row in enumerate(rows) if isinstance(row, AnswerRow | UpdatesRow) and sign * row.total > 0]
    yield from sorted(found, key=lambda at: -abs(rows[at].total))
