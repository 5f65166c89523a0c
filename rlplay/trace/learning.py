"""The course of held-out prompts over the evaluations of a run: learned, forgotten, always or never right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rlplay.trace.records import Evaluated

Kind = Literal["learned", "forgotten", "never", "always"]
KINDS: tuple[Kind, ...] = ("learned", "forgotten", "never", "always")


class Course(NamedTuple):
    """A held-out prompt: its mean reward and its answers at each evaluation, and the update at which it flipped.

    `flip` is the update since which it is right (learned) or wrong (forgotten) for good; None if it never flipped.
    """

    prompt: str
    columns: dict[str, Any]
    rewards: list[float]
    answers: list[list[str]]
    kind: Kind
    flip: int | None


def courses(evaluations: Sequence[Evaluated]) -> tuple[list[int], float, list[Course]]:
    """The updates of the evaluations, the reward from which on a prompt counts as right, and a course per prompt.

    A prompt is right if the mean reward of its answers is at least half-way between the lowest and the highest mean of
    the run. Prompts that flip come first, in the order in which they do. Evaluations of other prompts than those of
    the last one are left out: they do not compare.
    """
    asked = [list(each.prompts) for each in evaluations]
    kept = [each for each, prompts in zip(evaluations, asked, strict=True) if prompts == asked[-1]]
    if not kept:
        return [], 0.0, []
    parts = _parts(kept[-1])
    means = np.array([[_mean(each.rewards[part]) for part in parts] for each in kept])
    finite = means[np.isfinite(means)]
    middle = float(finite.min() + finite.max()) / 2 if len(finite) else 0.0
    updates = [each.update for each in kept]
    found = []
    for column, part in enumerate(parts):
        kind, flip = _kind(means[:, column] >= middle, updates)
        columns = kept[-1].columns[part.start] if kept[-1].columns else {}
        answers = [each.completions[part] for each in kept]
        found.append(Course(kept[-1].prompts[part.start], columns, means[:, column].tolist(), answers, kind, flip))
    return updates, middle, sorted(found, key=lambda each: (KINDS.index(each.kind), each.flip or 0))


def _parts(evaluated: Evaluated) -> list[slice]:
    """The answers to each prompt: neighbours with the same prompt and columns."""
    count = len(evaluated.prompts)
    keys = [(evaluated.prompts[row], evaluated.columns[row] if evaluated.columns else {}) for row in range(count)]
    starts = [row for row in range(count) if row == 0 or keys[row] != keys[row - 1]]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count], strict=True)]


def _mean(rewards: Any) -> float:
    known = rewards[np.isfinite(rewards)]
    return float(known.mean()) if len(known) else float("nan")


def _kind(right: Any, updates: list[int]) -> tuple[Kind, int | None]:
    first, last = bool(right[0]), bool(right[-1])
    if first == last:
        return ("always" if last else "never"), None
    others = np.flatnonzero(right != last)
    return ("learned" if last else "forgotten"), updates[int(others[-1]) + 1]
