"""Who taught a target: the shares of tokens added up by answer, and the answers by how near they are to it."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from rlplay.trace.answers import per_answer
from rlplay.trace.records import Array, Sampled
from rlplay.trace.teachers import Target, Taught
from rlplay.trace.update import Update

Nearness = Literal["same answer", "same prompt", "other prompts", "earlier updates"]


class Teacher(NamedTuple):
    """An answer of the update that the shares are of, or the updates after `since` up to `update` as a whole."""

    since: int
    update: int
    total: float
    """What it added to the target, nats."""
    completion: int | None = None  # None: whole updates
    token: int | None = None  # its strongest, in the flat token arrays
    share: float = 0.0  # that token's


class TeacherGroup(NamedTuple):
    """Teachers of one kind, those that did the most first, whichever way; earlier updates newest first."""

    nearness: Nearness
    total: float
    teachers: list[Teacher]


def teachers_by_answer(taught: Taught, update: Update, completion: int | None) -> list[TeacherGroup]:
    """The teachers of a target, nearest first; groups without any are left out.

    `update` is that of the shares, `taught.by`, and `completion` the answer in it that the target is from, if it is
    from one. Answers without a share had no part in the loss, and are left out. Earlier updates come last.
    """
    sampled = update.sampled
    assert sampled is not None
    shares = taught.shares.astype(np.float64)
    totals, takes_part = per_answer(sampled, shares), per_answer(sampled, shares != 0) > 0
    near = _nearness(taught.target, sampled, completion)
    groups = []
    for nearness in ("same answer", "same prompt", "other prompts"):
        rows = [row for row in range(len(near)) if near[row] == nearness and takes_part[row]]
        teachers = [_teacher(update.number, row, totals[row], sampled, shares) for row in rows]
        teachers.sort(key=lambda each: -abs(each.total))
        if teachers:
            groups.append(TeacherGroup(nearness, sum(each.total for each in teachers), teachers))
    if taught.earlier or taught.earlier_by:
        earlier = [Teacher(*each) for each in taught.earlier_by]
        groups.append(TeacherGroup("earlier updates", taught.earlier, earlier))
    return groups


def _teacher(number: int, row: int, total: float, sampled: Sampled, shares: Array) -> Teacher:
    start, end = sampled.offsets[row : row + 2].tolist()
    token = start + int(np.abs(shares[start:end]).argmax())
    return Teacher(number - 1, number, float(total), row, token, float(shares[token]))


def _nearness(target: Target, sampled: Sampled, completion: int | None) -> list[Nearness]:
    """How near each of the N answers is to the target; prompts are the same if their tokens are."""
    bounds, asked = sampled.prompt_offsets, np.array(target.prompt_ids, dtype=np.int32)
    same = [np.array_equal(sampled.prompt_ids[bounds[g] : bounds[g + 1]], asked) for g in range(len(sampled.prompts))]
    found: list[Nearness] = ["same prompt" if same[group] else "other prompts" for group in sampled.group.tolist()]
    if completion is not None:
        found[completion] = "same answer"
    return found
