"""The course of held-out prompts over the evaluations of a run: learned, forgotten, always or never right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rlplay.trace.known import Known
from rlplay.trace.records import AnyRecord, Array, Evaluated

Kind = Literal["learned", "forgotten", "wavered", "never", "always"]
KINDS: tuple[Kind, ...] = ("learned", "forgotten", "wavered", "never", "always")
"""Right at last only, at first only, at both or neither but not throughout, at no evaluation, at every evaluation."""


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


class LearningCourses(NamedTuple):
    """The updates of the evaluations, the reward from which on a prompt counts as right, and a course per prompt."""

    updates: list[int]
    middle: float
    courses: list[Course]

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest mean reward of a prompt at any evaluation; NaN where none has one."""
        means = np.array([course.rewards for course in self.courses])
        known = means[np.isfinite(means)]
        return (float(known.min()), float(known.max())) if len(known) else (float("nan"), float("nan"))

    def right(self, at: int) -> int:
        """How many prompts are right at evaluation `at`, counted from 0."""
        return sum(course.rewards[at] >= self.middle for course in self.courses)


class Evaluations(Known[Evaluated]):
    """The held-out answers of the live branch of a run."""

    def __init__(self, by_update: Callable[[], dict[int, Any]] = dict) -> None:
        super().__init__(by_update)
        self.problem = ""  # why an evaluation could not be read
        self._learned = self.version, courses([])

    def add(self, record: AnyRecord) -> None:
        """Take any record; evaluations are kept."""
        if isinstance(record, Evaluated):
            self._keep(record.update, record)

    @property
    def learned(self) -> LearningCourses:
        """What became of every prompt so far."""
        if self._learned[0] != self.version:
            self._learned = self.version, courses([self._kept[number] for number in sorted(self._kept)])
        return self._learned[1]


def courses(evaluations: Sequence[Evaluated]) -> LearningCourses:
    """What became of every prompt over the evaluations, which come by ascending update.

    A prompt is right if the mean reward of its answers is at least half-way between the lowest and the highest mean of
    the run. Prompts that flip come first, in the order in which they do. Evaluations of other prompts than those of
    the last one are left out: they do not compare. So are those of which another trainer logged numbers alone.
    """
    evaluations = [each for each in evaluations if each.prompts]
    asked = [list(each.prompts) for each in evaluations]
    kept = [each for each, prompts in zip(evaluations, asked, strict=True) if prompts == asked[-1]]
    if not kept:
        return LearningCourses([], 0.0, [])
    parts = parts_of(kept[-1])
    means = _means(np.array([each.rewards for each in kept], dtype=np.float64), [part.start for part in parts])
    finite = means[np.isfinite(means)]
    middle = float(finite.min() + finite.max()) / 2 if len(finite) else 0.0
    updates = [each.update for each in kept]
    found = []
    for column, part in enumerate(parts):
        kind, flip = _kind(means[:, column] >= middle, updates)
        columns = kept[-1].columns[part.start] if kept[-1].columns else {}
        answers = [each.completions[part] for each in kept]
        found.append(Course(kept[-1].prompts[part.start], columns, means[:, column].tolist(), answers, kind, flip))
    return LearningCourses(updates, middle, sorted(found, key=lambda each: (KINDS.index(each.kind), each.flip or 0)))


def parts_of(evaluated: Evaluated) -> list[slice]:
    """The answers to each prompt: neighbours with the same prompt and columns."""
    count = len(evaluated.prompts)
    keys = [(evaluated.prompts[row], evaluated.columns[row] if evaluated.columns else {}) for row in range(count)]
    starts = [row for row in range(count) if row == 0 or keys[row] != keys[row - 1]]
    return [slice(start, end) for start, end in zip(starts, [*starts[1:], count][: len(starts)], strict=True)]


def _means(rewards: Array, starts: list[int]) -> Array:
    """The mean reward of each prompt's answers, float64 [E, prompts], of rewards [E, N]; NaN where none is known."""
    known = np.isfinite(rewards)
    sums = np.add.reduceat(np.where(known, rewards, 0.0), starts, axis=1)
    counts = np.add.reduceat(known, starts, axis=1, dtype=np.int64)
    return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def _kind(right: Any, updates: list[int]) -> tuple[Kind, int | None]:
    first, last = bool(right[0]), bool(right[-1])
    if first == last:
        return "always" if right.all() else "wavered" if right.any() else "never", None
    others = np.flatnonzero(right != last)
    return ("learned" if last else "forgotten"), updates[int(others[-1]) + 1]
