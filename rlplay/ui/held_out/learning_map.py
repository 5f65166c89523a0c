"""The learning map: the held-out prompts over the evaluations of a run, as bands: learned, forgotten and so on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from textual.content import Content

from rlplay.trace.evaluations import Course, Kind, LearningCourses
from rlplay.trace.numbers import number
from rlplay.trace.records import Array
from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.picture import AXIS, NOTE, Axes, Picture, Size, painted
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import VALUE, signs

SHADES = "░▒▓█"
"""From the lowest mean reward of the run to the highest."""
UNKNOWN = "·"
"""No answer has a reward."""
TOP_DOWN: tuple[Kind, ...] = ("never", "forgotten", "wavered", "learned", "always")
"""The bands from the top: what is right at last is at the bottom, so that it grows upwards."""
AXIS_NAME = "update"
NOTHING_YET = "Every held-out prompt will be drawn here, from wrong to right. Press `u` for the first update."
NO_EVALUATIONS = "No held-out answers are on record."
READING = "Reading the held-out answers…"
_ROOMY = 4
"""Cells of an evaluation from which on one of them separates it from the next."""
_STYLES = ("$border", "$success 45%", "$success 70%", "$success")


def level(reward: float, ends: tuple[float, float]) -> int:
    """The index in `SHADES` of a mean reward between the `ends`; −1 if it is not known."""
    low, high = ends
    if not math.isfinite(reward):
        return -1
    share = (reward - low) / (high - low) if high > low else 0.0
    return min(int(share * len(SHADES)), len(SHADES) - 1)


@dataclass(frozen=True)
class LearningMap:
    """A view of all held-out prompts over the run."""

    title = "Learning map"
    metrics = ("eval_reward",)
    of_run = True

    def state(self, source: PlotData) -> object:
        """What is known of the evaluations, and the updates of the axis."""
        evaluations = source.evaluations
        version = None if evaluations is None else (evaluations.version, bool(evaluations.missing))
        return version, source.span, source.history.marks

    def data(self, source: PlotData) -> object:
        """What is drawn: rewards and answers of every prompt, equal for equal maps; None before there are any."""
        learned = _learned(source)
        return None if learned is None else (learned.updates, [repr(course) for course in learned.courses])

    def margins(self, source: PlotData, _log: bool, lines: int) -> Margins:
        """The cells of the bands' names."""
        learned = _learned(source)
        return (0, 0) if learned is None else (_left(_names(_bands(learned.courses, max(lines - 1, 1)))), 0)

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """A band for each kind of prompt; the fuller a cell, the higher the mean reward of its prompts."""
        learned = _learned(source)
        if learned is None:
            if source.evaluations is not None and source.evaluations.missing:
                return READING
            return NO_EVALUATIONS if source.history.updates else source.coming(NOTHING_YET)
        height = max(size.height - 1, 1)
        bands = _bands(learned.courses, height)
        names = _names(bands)
        left = max(source.room[0], _left(names))
        frame = _frame(source, size, left)
        shown = [_nearest(learned.updates, frame.x(at)) for at in range(frame.left, frame.right + 1)]
        levels = np.concatenate([_levels(band.courses, band.lines, learned.ends) for band in bands])[:, shown]
        cells = np.array(list(SHADES + UNKNOWN))[levels]
        cells[:, _gaps(shown)] = " "
        name = [(left - len(AXIS_NAME) - 1, AXIS_NAME, AXIS)] if left > len(AXIS_NAME) else []
        axis = frame.axis("", "", name + _ticks(learned.updates, frame) + _marks(source, frame))
        labels = [f"{name:>{left - 1}} " for name in names]
        styles = ("",) * len(_STYLES) if source.plain else _STYLES
        return Picture(painted(labels, cells, np.maximum(levels, 0), styles, axis), frame)

    def titles(
        self, source: PlotData, cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, how many prompts are right at the first and at the last evaluation; below, what the shades mean."""
        learned = _learned(source)
        if learned is None:
            return Content(self.title), Content("")
        count = len(learned.courses)
        first, last = learned.right(0), learned.right(-1)
        right, when = f"{first}→{last}" if len(learned.updates) > 1 else f"{last}", ""
        if cursor is not None:
            at = _nearest(learned.updates, cursor)
            right, when = f"{learned.right(at)}", f" at {learned.updates[at]}"
        above = Content.assemble(f"{self.title} · ", (right, VALUE), f" of {count} right{when}")
        low, high = learned.ends
        marks = [(f" {shade}", "" if source.plain else ink) for shade, ink in zip(SHADES, _STYLES, strict=True)]
        lowest, between, highest = marks[:1], marks[1:-1], marks[-1:]
        below = Content.assemble(
            "mean reward", *lowest, f" {number(low)}", *between, *highest, f" {number(high)}", " · held-out prompts"
        )
        return above, below


class _Band(NamedTuple):
    """The prompts of one kind, from the top, and the number of its lines."""

    kind: Kind
    courses: list[Course]
    lines: int


def _learned(source: PlotData) -> LearningCourses | None:
    learned = None if source.evaluations is None else source.evaluations.learned
    return learned if learned is not None and learned.courses else None


def _bands(courses: list[Course], height: int) -> list[_Band]:
    """The bands from the top: as high as their shares of the prompts, but at least a line; the smallest may have none.

    In a band, those that flip last come first.
    """
    by_kind = {kind: [each for each in courses if each.kind == kind][::-1] for kind in TOP_DOWN}
    kept = sorted((kind for kind in by_kind if by_kind[kind]), key=lambda kind: -len(by_kind[kind]))[:height]
    lines = dict.fromkeys(kept, 1)
    for _ in range(height - len(kept)):
        lines[max(kept, key=lambda kind: len(by_kind[kind]) / lines[kind])] += 1
    return [_Band(kind, by_kind[kind], lines[kind]) for kind in TOP_DOWN if kind in lines]


def _names(bands: list[_Band]) -> list[str]:
    """What is written beside each line: the kind of a band and its number of prompts, at its middle."""
    names = []
    for kind, courses, lines in bands:
        names += [f"{kind} {len(courses)}" if line == (lines - 1) // 2 else "" for line in range(lines)]
    return names


def _left(names: list[str]) -> int:
    return max(map(len, names)) + 1


def _levels(courses: list[Course], lines: int, ends: tuple[float, float]) -> Array:
    """The indices in `SHADES` of a band's cells, int [lines, evaluations]: the mean over the prompts of each line."""
    found = []
    for line in range(lines):
        start = line * len(courses) // lines
        end = max((line + 1) * len(courses) // lines, start + 1)
        rewards = np.array([course.rewards for course in courses[start:end]])
        known = np.isfinite(rewards)
        sums = np.where(known, rewards, 0.0).sum(axis=0)
        means = np.divide(sums, known.sum(axis=0), out=np.full(len(sums), np.nan), where=known.any(axis=0))
        found.append([level(mean, ends) for mean in means.tolist()])
    return np.array(found)


def _frame(source: PlotData, size: Size, left: int) -> Axes:
    first, last = source.span
    return Axes(size.width, left, max(size.width - 1 - source.room[1], left + 1), first, max(last, first + 1))


def _nearest(updates: list[int], at: float) -> int:
    """The index of the evaluation nearest to an update."""
    return min(range(len(updates)), key=lambda index: abs(updates[index] - at))


def _gaps(shown: list[int]) -> list[int]:
    """The cells before another evaluation begins: blank where evaluations are few, as nothing is known between them."""
    ends = [at for at, (one, other) in enumerate(pairwise(shown)) if one != other]
    return ends if len(shown) >= _ROOMY * (len(ends) + 1) else []


def _ticks(updates: list[int], frame: Axes) -> list[tuple[int, str, str]]:
    """The updates of the evaluations below their cells: the first, the last, and of the others as many as fit."""

    def cells(update: int) -> range:
        start = min(max(frame.column(update) - len(str(update)) // 2, frame.left), frame.right + 1 - len(str(update)))
        return range(start, start + len(str(update)))

    taken: set[int] = set()
    ticks = []
    for update in dict.fromkeys([updates[0], updates[-1], *updates]):
        place = cells(update)
        if taken.isdisjoint(place):
            taken |= {*range(place.start - 1, place.stop + 1)}
            ticks.append((place.start, str(update), AXIS))
    return ticks


def _marks(source: PlotData, frame: Axes) -> list[tuple[int, str, str]]:
    marks = signs(source.history.marks)
    return [(frame.column(update), sign, NOTE) for update, sign in marks if frame.first <= update <= frame.last]
