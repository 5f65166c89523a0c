"""The learning map: how many of the held-out prompts are right at each evaluation, by what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from textual.content import Content

from rlplay.trace.evaluations import Kind, LearningCourses
from rlplay.trace.records import Array
from rlplay.ui.plot.canvas import Canvas
from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.picture import AXIS, NOTE, Axes, Picture, Size, painted
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.scale import PlotScale
from rlplay.ui.plot.view import VALUE, signs

INKS: dict[Kind, str] = {
    "always": "$curve-c", "learned": "$curve-a", "wavered": "$curve-d", "forgotten": "$curve-b", "never": "$curve-f",
}  # fmt: skip
"""The bands from the bottom: what is right at last is there, so that it grows upwards."""
NOTHING_YET = "Every held-out prompt will be drawn here, from wrong to right. Press `u` for the first update."
NO_EVALUATIONS = "No held-out answers are on record."
READING = "Reading the held-out answers…"
TEXTURES: dict[Kind, str] = {"always": "▓", "learned": "█", "wavered": "▚", "forgotten": "▒", "never": "░"}
"""Of what is right in each band where the terminal has no colours."""
WRONG = "░"
_ROOMY = 4
"""Cells of an evaluation from which on one of them separates it from the next."""


@dataclass(frozen=True)
class LearningMap:
    """A view of all held-out prompts over the run: every band is as high as its number of prompts."""

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
        """The cells of the numbers of prompts."""
        learned = _learned(source)
        return (0, 0) if learned is None else (_left(_scale(learned).labels(max(lines - 1, 2), log=False)), 0)

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """A column for each evaluation: of each band, the bright part is right, the dim part is not."""
        learned = _learned(source)
        if learned is None:
            if source.evaluations is not None and source.evaluations.missing:
                return READING
            return NO_EVALUATIONS if source.history.updates else source.coming(NOTHING_YET)
        height, scale = max(size.height - 1, 2), _scale(learned)
        labels = scale.labels(height, log=False)
        left = max(source.room[0], _left(labels))
        frame = _frame(source, size, left)
        shown = np.array([_nearest(learned.updates, frame.x(at)) for at in range(frame.left, frame.right + 1)])
        canvas = Canvas(len(shown), height)
        kept = np.setdiff1d(np.arange(len(shown)), _gaps(shown.tolist()))
        for kind, edges in _edges(learned).items():
            ends = np.rint(scale.unit(edges[:, shown[kept]].astype(float), log=False) * height * 8).astype(int)
            canvas.paint(kept, ends[0], ends[1], INKS[kind])
            canvas.paint(kept, ends[1], ends[2], f"{INKS[kind]}-shade")
        if source.plain:
            characters, inks, styles = _bare(canvas)
        else:
            _name(canvas, learned)
            characters, inks, styles = canvas.finished()
        axis = frame.axis("", "", _ticks(learned.updates, frame) + _marks(source, frame))
        return Picture(painted([f"{label:>{left - 1}} " for label in labels], characters, inks, styles, axis), frame)

    def titles(
        self, source: PlotData, cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, how many prompts are right at the first and the last evaluation; below, the bands, smallest first."""
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
        sizes = _sizes(learned)
        named = [
            Content.assemble(
                (f"{TEXTURES[kind] if source.plain else '■'} ", INKS[kind]), f"{_word(kind, learned)} {sizes[kind]}"
            )
            for kind in sorted(sizes, key=lambda kind: sizes[kind])
        ]
        key = f"{WRONG} wrong" if source.plain else "bright: right"
        return above, Content(" · ").join([*named, Content(key)])


def _learned(source: PlotData) -> LearningCourses | None:
    learned = None if source.evaluations is None else source.evaluations.learned
    return learned if learned is not None and learned.courses else None


def _scale(learned: LearningCourses) -> PlotScale:
    """The scale of the number of prompts, which ends with all of them."""
    return PlotScale(0.0, float(len(learned.courses)))


def _left(labels: list[str]) -> int:
    return max(map(len, labels)) + 1


def _edges(learned: LearningCourses) -> dict[Kind, Array]:
    """Of each band from the bottom: where its right prompts begin and end and its wrong ones end, int [3, evaluations].

    A prompt whose rewards are unknown at an evaluation is in neither part.
    """
    below, found = 0, {}
    for kind in INKS:
        rewards = np.array([course.rewards for course in learned.courses if course.kind == kind])
        if not len(rewards):
            continue
        right = (rewards >= learned.middle).sum(axis=0)
        found[kind] = below + np.stack([np.zeros_like(right), right, np.isfinite(rewards).sum(axis=0)])
        below += len(rewards)
    return found


def _sizes(learned: LearningCourses) -> dict[Kind, int]:
    """How many prompts each band has, without the empty ones."""
    counts = {kind: sum(course.kind == kind for course in learned.courses) for kind in INKS}
    return {kind: count for kind, count in counts.items() if count}


def _word(kind: Kind, learned: LearningCourses) -> str:
    """The name of a band: after one evaluation nobody knows of "never"."""
    return "not yet" if kind == "never" and len(learned.updates) == 1 else kind


def _name(canvas: Canvas, learned: LearningCourses) -> None:
    """Write into each band what it is, where its bright or its dim part fills enough of a line."""
    for kind, count in _sizes(learned).items():
        for style, ink in ((INKS[kind], "bold $background"), (f"{INKS[kind]}-shade", "$foreground")):
            columns, row = canvas.longest(style)
            text = f"{_word(kind, learned)} {count}"
            if len(columns) > len(text) + 1:
                start = columns.start + (len(columns) - len(text)) // 2
                for at, character in enumerate(text, start):
                    canvas.write(at, row, character, ink)
                break


def _bare(canvas: Canvas) -> tuple[Array, Array, list[str]]:
    """The cells without colours, each as what is in its middle."""
    middle, styles = canvas.middle()
    textures = {INKS[kind]: texture for kind, texture in TEXTURES.items()}
    signs = np.array([" ", *(textures.get(style, WRONG) for style in styles[1:])])
    return signs[middle], np.zeros_like(middle), [""]


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
