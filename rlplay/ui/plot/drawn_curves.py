"""Curves as text: lines with weight on a canvas, with scales, gaps, bands, labels and the signs of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rlplay.trace.records import Array
from rlplay.ui.plot.canvas import Canvas
from rlplay.ui.plot.curve import GHOST, Curve, Margins
from rlplay.ui.plot.guess import Guess, draw_guess
from rlplay.ui.plot.picture import AXIS, NOTE, Axes, Picture, Size, painted
from rlplay.ui.plot.scale import PlotScale, scale_of
from rlplay.ui.plot.strokes import area, band, between, course, heavy, thin

MISSING, RULE, NEWEST = "$error", "$border", "bold $foreground"
POINT = "○"
_APART = 8
"""Cells from one label of an update to the next, at least."""
_LAYERS = ("thin", "line", "dashed", "points")
"""What is drawn later lies on top: a solid line shows between the dashes over it."""


def curves(
    series: Sequence[Curve], marks: Iterable[tuple[int, str]], size: Size, log: bool = False, words: str = "",
    span: tuple[int, int] | None = None, room: Margins = (0, 0), tinted: bool = True,
    guess: Guess | None = None, ends: tuple[str, str] | None = None,
) -> Picture:  # fmt: skip
    """The series over updates; `marks` are signs of events at updates; `words` are written on the axis.

    `span` is the first and the last update of the axis; by default those of the series. `room` is the minimum of cells
    for labels, so that stacked plots can share their columns. Areas and bands need a terminal with tints.

    A `guess` is of the first of the series. `ends` are the labels of the ends of the axis, if not their updates.

    A value that is not finite, or not positive on a log scale, leaves a gap and a × on the axis.
    """
    scales = _scales(series, log)
    height = max(size.height - 1, 2)
    labels = [scale.labels(height, log) if scale else [""] * height for scale in scales]
    gutters = [max(each) for each in zip(margins(series, log, size.height), room, strict=True)]
    width = max(size.width - sum(gutters), 2)
    first, last = span or (min(min(c.updates) for c in series), max(max(c.updates) for c in series))
    frame = Axes(size.width, gutters[0], gutters[0] + width - 1, first, max(last, first + 1))
    notes = [(frame.column(update), sign, NOTE) for update, sign in marks if update <= last]
    canvas = Canvas(width, height)
    placed = [_Placed(curve, scales[curve.side == "right"], frame, log) for curve in series]
    notes += [(frame.column(gap), "×", MISSING) for each in placed for gap in each.x[~each.good]]
    if tinted:
        _tint(canvas, placed)
    for each in sorted(placed, key=lambda each: (each.curve.style != GHOST, _LAYERS.index(each.curve.kind))):
        each.draw(canvas)
    if guess is not None and (height_then := placed[0].at_update(guess.update)) is not None:
        draw_guess(canvas, frame, guess, height_then)
    inner = next(labels[side] for side in (0, 1) if side or any(labels[0]))
    for at in range(1, height - 1):
        if inner[at]:
            canvas.rule(height - 1 - at, RULE)
    for cut in sorted({cut for curve in series for cut in curve.cuts if first < cut <= last}):
        canvas.fence(frame.column(cut - 0.5) - frame.left, RULE)
    _write(canvas, placed)
    _name_parts(canvas, frame, series[0])
    # Labels of two scales take the colours of their curves; those of a single scale stay muted.
    inks = {c.side: c.style for c in reversed(series)} if all(map(any, labels)) else {}
    ends = ends or (str(first), str(last) if last > first else "")
    below = [(_free(frame, ends, notes, len(words)), words, AXIS)] if words else _updates(frame, ends, notes)
    characters, styles, names = canvas.finished()
    content = painted(
        [f"{label:>{gutters[0] - 1}} " if gutters[0] else "" for label in labels[0]], characters, styles, names,
        frame.axis(*ends, [*below, *notes]), [label.rjust(gutters[1]) for label in labels[1]],
        (inks.get("left", AXIS), inks.get("right", AXIS)),
    )  # fmt: skip
    return Picture(content, frame)


class _Placed:
    """A curve on its scale: a height between 0 and 1 for each of its values."""

    def __init__(self, curve: Curve, scale: PlotScale | None, frame: Axes, log: bool) -> None:
        self.curve, self.scale, self.frame, self.log = curve, scale or PlotScale(0.0, 0.0), frame, log
        self.order = np.argsort(np.asarray(curve.updates), kind="stable")  # a trainer may log in another order
        self.x = np.asarray(curve.updates, dtype=float)[self.order]
        self.unit = self._unit(curve.values)
        self.good = np.isfinite(self.unit)
        share = np.clip((self.x - frame.first) / max(frame.last - frame.first, 1e-9), 0, 1)
        self.at = share * (frame.right - frame.left)

    @property
    def zero(self) -> float:
        """The height of 0; on a log scale, of the lowest value."""
        return 0.0 if self.log else float(np.clip(self.scale.unit(np.array(0.0), log=False), 0, 1))

    def stretches(self) -> Iterator[Array]:
        """The indices of the points of each stretch without a gap or a cut."""
        cuts = np.searchsorted(self.x, np.asarray(self.curve.cuts, dtype=float)).tolist()
        for stretch in np.split(np.arange(len(self.x)), sorted({*np.flatnonzero(~self.good).tolist(), *cuts})):
            known = stretch[self.good[stretch]]
            if len(known):
                yield known

    def at_update(self, update: int) -> float | None:
        """The height of the last value up to an update; None if there is none."""
        known = self.unit[(self.x <= update) & self.good]
        return float(known[-1]) if len(known) else None

    def heights(self) -> dict[int, float]:
        """By column, the middle of the line."""
        found: dict[int, float] = {}
        for run in self.stretches():
            drawn = course(self.at[run], self.unit[run])
            middles = (np.interp(drawn.columns, self.at[run], self.unit[run])).tolist()
            found |= dict(zip(drawn.columns.tolist(), middles, strict=True))
        return found

    def edges(self) -> tuple[Array, Array] | None:
        """The heights of the lower and of the upper edge of the band. The axis cuts it off."""
        if self.curve.band is None:
            return None
        low, high = (self._unit(edge) for edge in self.curve.band)
        return np.clip(low, 0, 1), np.clip(high, 0, 1)

    def _unit(self, values: Sequence[float]) -> Array:
        return self.scale.unit(np.asarray(values, dtype=float)[self.order], self.log)

    def draw(self, canvas: Canvas) -> None:
        """Draw the line, or the points of it that stand alone."""
        curve = self.curve
        for run in self.stretches():
            at, unit = self.at[run], self.unit[run]
            if curve.kind == "points" or len(run) == 1:
                self._dots(canvas, at, unit)
            if len(run) > 1 and (curve.style == GHOST or curve.kind in ("thin", "points")):
                thin(canvas, at, unit, curve.style, "dotted" if curve.kind == "points" else "solid")
            elif len(run) > 1:
                heavy(canvas, at, unit, curve.style, "dashed" if curve.kind == "dashed" else "solid")

    def _dots(self, canvas: Canvas, at: Array, unit: Array) -> None:
        for column, row in zip(*self.cells(canvas, at, unit), strict=True):
            canvas.write(column, row, POINT if self.curve.kind == "points" else "●", self.curve.style)

    def cells(self, canvas: Canvas, at: Array, unit: Array) -> tuple[list[int], list[int]]:
        """The columns and the rows of points."""
        rows = np.rint(unit * (canvas.height * 8 - 4)).astype(int) + 2
        return np.rint(at).astype(int).tolist(), (rows // 8).tolist()


def _tint(canvas: Canvas, placed: Sequence[_Placed]) -> None:
    """Shade the areas and the bands."""
    for each in placed:
        edges, style = each.edges(), f"{each.curve.style}-shade"
        for run in each.stretches():
            if each.curve.area == "under" and len(run) > 1:
                area(canvas, each.at[run], each.unit[run], each.zero, style)
            if edges is not None:
                wide = run[np.isfinite([edge[run] for edge in edges]).all(axis=0)]
                if len(wide):
                    band(canvas, each.at[wide], edges[0][wide], edges[1][wide], style)
    pair = [each for each in placed if each.curve.area == "between"]
    if len(pair) == 2:
        styles = f"{pair[0].curve.style}-shade", f"{pair[1].curve.style}-shade"
        between(canvas, pair[0].heights(), pair[1].heights(), styles)


def _write(canvas: Canvas, placed: Sequence[_Placed]) -> None:
    """Mark the newest point, and put the letter of each curve on it, in its own column as long as columns are free."""
    lettered = [each for each in placed if each.curve.letter and each.good.any()]
    taken: set[int] = set()
    for place, each in enumerate(lettered):
        at, unit = each.at[each.good], each.unit[each.good]
        columns = range(round(at[0]), round(at[-1]) + 1)
        column = _nearest(columns, (place + 0.5) / len(lettered), taken)
        taken.add(column)
        if each.curve.cuts:  # no curve between two stretches
            column = round(at[np.abs(at - column).argmin()])
        (row,) = each.cells(canvas, np.array([column]), np.interp([column], at, unit))[1]
        canvas.write(column, row, each.curve.letter, each.curve.style)
    for each in placed:
        _name(canvas, each)
        if each.curve.newest and each.good[-1:].any():
            (column,), (row,) = each.cells(canvas, each.at[-1:], each.unit[-1:])
            canvas.write(column, row, "●", NEWEST)


def _name(canvas: Canvas, placed: _Placed) -> None:
    """Write the name of a curve near its end or its beginning, where nothing else is drawn."""
    name = placed.curve.name
    if not name or not placed.good.any() or canvas.width < len(name):
        return
    ends = placed.good.nonzero()[0][[-1, 0]]
    for column, row in zip(*placed.cells(canvas, placed.at[ends], placed.unit[ends]), strict=True):
        start = max(column + 1 - len(name), 0)
        rows = [at for away in range(1, 4) for at in (row + away, row - away) if 0 <= at < canvas.height]
        place = next((at for at in rows if canvas.free(range(start, start + len(name)), at)), None)
        if place is not None:
            for at, character in enumerate(name, start):
                canvas.write(at, place, character, placed.curve.style)
            return


def _name_parts(canvas: Canvas, frame: Axes, curve: Curve) -> None:
    """Write on either side of each cut what the curve measures there, where nothing else is drawn."""
    for cut in curve.cuts:
        fence = frame.column(cut - 0.5) - frame.left
        before = next((name for start, name in reversed(curve.parts) if start < cut), "")
        after = next((name for start, name in curve.parts if start == cut), "")
        for name, start in ((before, fence - len(before) - 1), (after, fence + 2)):
            columns = range(start, start + len(name))
            fits = start >= 0 and columns.stop <= canvas.width
            row = next((row for row in reversed(range(canvas.height)) if canvas.free(columns, row)), None)
            if fits and row is not None:
                for at, character in enumerate(name, start):
                    canvas.write(at, row, character, AXIS)


def margins(series: Sequence[Curve], log: bool, lines: int) -> Margins:
    """Cells that the labels take on the left and on the right of a plot of so many lines."""
    labels = (scale.labels(max(lines - 1, 2), log) if scale else [] for scale in _scales(series, log))
    left, right = (max((len(label) + 1 for label in each), default=0) for each in labels)
    return left, right


def _free(frame: Axes, ends: tuple[str, str], notes: Iterable[tuple[int, str, str]], length: int) -> int:
    """The first cell of the axis with `length` free cells; otherwise the cell after the first label."""
    left, right = frame.left + len(ends[0]) + 1, frame.right - len(ends[1])
    taken = {column for column, _, _ in notes}
    free = (at for at in range(left, right - length) if taken.isdisjoint(range(at - 1, at + length + 1)))
    return next(free, left)


def _updates(
    frame: Axes, ends: tuple[str, str], notes: Iterable[tuple[int, str, str]]
) -> list[tuple[int, str, str]]:  # fmt: skip
    """Labels of round updates between the two ends, for the axis, where no sign is."""
    width = frame.right - frame.left + 1
    taken = {column for column, _, _ in notes}
    least = (frame.last - frame.first) * _APART / width
    step = next(nice * power for power in (10**n for n in range(20)) for nice in (1, 2, 5) if nice * power >= least)
    found = []
    for update in range(int(frame.first // step + 1) * step, int(frame.last), step):
        start = frame.column(update) - len(str(update)) // 2
        free = taken.isdisjoint(range(start - 1, start + len(str(update)) + 1))
        if free and frame.left + len(ends[0]) + 1 < start < frame.right - len(ends[1]) - len(str(update)) - 1:
            found.append((start, str(update), AXIS))
    return found


def _nearest(columns: range, share: float, taken: set[int]) -> int:
    """The free column nearest to this share of the width; if none is free, the column at the share."""
    wish = columns[int(len(columns) * share)]
    return min((column for column in columns if column not in taken), key=lambda it: abs(it - wish), default=wish)


def _scales(series: Sequence[Curve], log: bool) -> list[PlotScale | None]:
    """The scales on the left and on the right. The axis cuts off a band."""
    sides = ([c for c in series if c.side == side] for side in ("left", "right"))
    return [scale_of([(np.asarray([*c.values, *c.ends], dtype=float), c.noise) for c in side], log) for side in sides]
