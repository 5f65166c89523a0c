"""Curves as text: plotext draws the dots; this module adds the scales, gaps, bands and labels.

For the UI's thread only: plotext draws on one global figure. Functions import plotext on use, because the first frame
plots nothing and the import takes a tenth of the start-up time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from textual.content import Content, Span

from rlplay.trace.numbers import NOISE
from rlplay.trace.records import Array
from rlplay.ui.plot.picture import AXIS, NOTE, Axes, Picture, Size
from rlplay.ui.plot.scale import PlotScale, scale_of

MISSING, BAND, RULE = "$error", "on $primary 10%", "$border"
_PIECE = re.compile(r"(?:\x1b\[(?:38;5;)?(\d+)m)*([^\x1b]+)")
_DASH, _SPACE = 6, 3
"""The lengths of a dash and of the space after it, in dots of a braille cell."""
_FEW = 6
"""With at least so many cells from one point to the next, each point is marked."""


Margins = tuple[int, int]
"""Cells to the left and to the right of a plot."""


@dataclass(frozen=True)
class Curve:
    """One series. A "right" curve has its own scale, written on the right; `band` is drawn as value ± band.

    A `letter` on the curve identifies it if line styles are not enough. At the updates in `cuts` the curve starts
    again, because the metric then measures another quantity. Values below `noise` count as 0.
    """

    updates: Sequence[int]
    values: Sequence[float]
    style: str
    kind: Literal["line", "dotted", "points"] = "line"
    side: Literal["left", "right"] = "left"
    band: Sequence[float] | None = None
    letter: str = ""
    cuts: Sequence[int] = ()
    noise: float = NOISE


def curves(
    series: Sequence[Curve], marks: Iterable[tuple[int, str]], size: Size, log: bool = False, words: str = "",
    span: tuple[int, int] | None = None, room: Margins = (0, 0),
) -> Picture:  # fmt: skip
    """The series over updates; `marks` are signs of events at updates; `words` are written on the axis.

    `span` is the first and the last update of the axis; by default those of the series. `room` is the minimum of cells
    for labels, so that stacked plots can share their columns.

    A value that is not finite, or not positive on a log scale, leaves a gap and a × on the axis.
    """
    import plotext

    scales = _scales(series, log)
    height = max(size.height - 1, 2)
    labels = [scale.labels(height, log) for scale in scales]
    gutters = [max(each) for each in zip(margins(series, log, size.height), room, strict=True)]
    width = max(size.width - sum(gutters), 2)
    first, last = span or (min(min(c.updates) for c in series), max(max(c.updates) for c in series))
    frame = Axes(size.width, gutters[0], gutters[0] + width - 1, first, max(last, first + 1))
    notes = [(frame.column(update), sign, NOTE) for update, sign in marks if first <= update <= last]
    bands: list[Span] = []
    _clear(frame, height)
    for index, curve in sorted(enumerate(series), key=lambda item: _layer(item[1])):
        scale = scales[curve.side == "right"]
        x, y = np.asarray(curve.updates, dtype=float), np.asarray(curve.values, dtype=float)
        unit = scale.unit(y, log)
        good = np.isfinite(unit)
        notes += [(frame.column(gap), "×", MISSING) for gap in x[~good]]
        edges = None
        if curve.band is not None:
            edges = [np.clip(scale.unit(y + sign * np.asarray(curve.band), log), 0, 1) for sign in (1, -1)]
        for stretch in np.split(np.arange(len(x)), _breaks(x, good, curve.cuts)):
            run = stretch[good[stretch]]
            if len(run):
                _draw(x[run], unit[run], curve.kind, index + 1, frame, height)
            if edges is not None and len(run):
                wide = run[np.isfinite([edge[run] for edge in edges]).all(axis=0)]
                bands += _band(frame, x[wide], [edge[wide] for edge in edges], height) if len(wide) else []
    _letters(frame, series, [scales[curve.side == "right"] for curve in series], log)
    rows = _rows(plotext.build(), [curve.style for curve in series])
    for cut in sorted({cut for curve in series for cut in curve.cuts if first < cut <= last}):
        rows = [_ruled(row, frame.column(cut - 0.5) - frame.left) for row in rows]
    inner = range(1, height - 1)
    lined = {at for at in inner if labels[not any(labels[0])][at]}
    rows = [_gridded(row) if at in lined else row for at, row in enumerate(rows)]
    # Labels of two scales take the colours of their curves; those of a single scale stay muted.
    inks = {c.side: c.style for c in reversed(series)} if all(map(any, labels)) else {"left": AXIS, "right": AXIS}
    lines = [
        Content.assemble(
            (f"{a:>{gutters[0] - 1}} " if gutters[0] else "", inks["left"]), row, (b.rjust(gutters[1]), inks["right"])
        )
        for a, row, b in zip(labels[0], rows, labels[1], strict=True)
    ]
    ends = str(first), str(last) if last > first else ""
    below = [(_room(frame, ends, notes, len(words)), words, AXIS)] if words else _ticks(frame, ends)
    axis = frame.axis(*ends, [*below, *notes])
    return Picture(Content("\n").join([*lines, axis]).add_spans(bands), frame)


def _layer(curve: Curve) -> tuple[bool, bool, bool]:
    """What is drawn later wins the cell: grey lies under all, and a solid line shows between the dashes over it."""
    return curve.kind == "points", curve.style != AXIS, curve.kind == "dotted"


def margins(series: Sequence[Curve], log: bool, lines: int) -> Margins:
    """Cells that the labels take on the left and on the right of a plot of so many lines."""
    labels = (scale.labels(max(lines - 1, 2), log) if scale.bottom else [] for scale in _scales(series, log))
    left, right = (max((len(label) + 1 for label in each), default=0) for each in labels)
    return left, right


def _breaks(x: Array, good: Array, cuts: Sequence[int]) -> list[int]:
    """The indices at which a new stretch of the curve begins: at gaps and at cuts."""
    return sorted({*np.flatnonzero(~good).tolist(), *np.searchsorted(x, np.asarray(cuts, dtype=float)).tolist()})


def _room(frame: Axes, ends: tuple[str, str], notes: Iterable[tuple[int, str, str]], length: int) -> int:
    """The first cell of the axis with `length` free cells; otherwise the cell after the first label."""
    left, right = frame.left + len(ends[0]) + 1, frame.right - len(ends[1])
    taken = {column for column, _, _ in notes}
    free = (at for at in range(left, right - length) if taken.isdisjoint(range(at - 1, at + length + 1)))
    return next(free, left)


def _clear(frame: Axes, height: int) -> None:
    import plotext

    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.plotsize(frame.right - frame.left + 1, height)
    plotext.frame(False)
    plotext.canvas_color("default")
    plotext.xticks([])
    plotext.yticks([])
    plotext.xlim(frame.first, frame.last)
    plotext.ylim(0, 1)


def _draw(x: Array, y: Array, kind: str, colour: int, frame: Axes, height: int) -> None:
    import plotext

    width = frame.right - frame.left + 1
    if kind == "points" or len(x) == 1:
        plotext.scatter(x.tolist(), y.tolist(), marker="•", color=colour)
        return
    if len(x) > 8 * width:
        # The lowest and the highest point of each dot column look the same and cost a fraction of the time.
        parts = np.array_split(np.arange(len(x)), 2 * width)
        keep = np.unique([i for part in parts for i in (part[y[part].argmin()], part[y[part].argmax()])])
        x, y = x[keep], y[keep]
    if kind == "dotted":
        plotext.scatter(*_dashes(x, y, frame, height), marker="braille", color=colour)
        return
    plotext.plot(x.tolist(), y.tolist(), marker="braille", color=colour)
    if (len(x) - 1) * _FEW <= frame.column(x[-1]) - frame.column(x[0]):
        plotext.scatter(x.tolist(), y.tolist(), marker="◦", color=colour)


def _dashes(x: Array, y: Array, frame: Axes, height: int) -> tuple[list[float], list[float]]:
    """Points along the dashes of a line, half a dot apart, so that steep parts are dashed like flat ones."""
    dots = 2 * (frame.right - frame.left + 1) / (frame.last - frame.first)
    way = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x) * dots, np.diff(y) * 4 * height))])
    at = np.arange(0.0, way[-1], 0.5)
    at = at[at % (_DASH + _SPACE) < _DASH]
    return np.interp(at, way, x).tolist(), np.interp(at, way, y).tolist()


def _ticks(frame: Axes, ends: tuple[str, str]) -> list[tuple[int, str, str]]:
    """Labels of round updates between the two ends, for the axis."""
    width = frame.right - frame.left + 1
    least = (frame.last - frame.first) * 12 / width
    step = next(nice * power for power in (10**n for n in range(20)) for nice in (1, 2, 5) if nice * power >= least)
    found = []
    for update in range(int(frame.first // step + 1) * step, int(frame.last), step):
        start = frame.column(update) - len(str(update)) // 2
        if frame.left + len(ends[0]) + 1 < start < frame.right - len(ends[1]) - len(str(update)) - 1:
            found.append((start, str(update), AXIS))
    return found


def _letters(frame: Axes, series: Sequence[Curve], scales: Sequence[PlotScale], log: bool) -> None:
    """Draw the letter of each curve, in a separate column as long as columns are free."""
    import plotext

    lettered = [index for index, curve in enumerate(series) if curve.letter]
    taken: set[int] = set()
    for place, index in enumerate(lettered):
        curve = series[index]
        y = scales[index].unit(np.asarray(curve.values, dtype=float), log)
        good = np.isfinite(y)
        if good.any():
            x = np.asarray(curve.updates, dtype=float)[good]
            columns = range(frame.column(x[0]), frame.column(x[-1]) + 1)
            column = _free(columns, (place + 0.5) / len(lettered), taken)
            taken.add(column)
            at = float(np.clip(frame.x(column), x[0], x[-1]))
            if curve.cuts:  # no curve between two stretches
                at = float(x[np.abs(x - at).argmin()])
            plotext.scatter([at], [float(np.interp(at, x, y[good]))], marker=curve.letter, color=index + 1)


def _free(columns: range, share: float, taken: set[int]) -> int:
    """The free column nearest to this share of the width; if none is free, the column at the share."""
    wish = columns[int(len(columns) * share)]
    return min((column for column in columns if column not in taken), key=lambda it: abs(it - wish), default=wish)


def _band(frame: Axes, x: Array, edges: Sequence[Array], height: int) -> list[Span]:
    spans = []
    for column in range(frame.column(x[0]), frame.column(x[-1]) + 1):
        top, bottom = (round((1 - np.interp(frame.x(column), x, edge)) * (height - 1)) for edge in edges)
        starts = range(top * (frame.width + 1) + column, (bottom + 1) * (frame.width + 1), frame.width + 1)
        spans += [Span(start, start + 1, BAND) for start in starts]
    return spans


def _rows(ansi: str, styles: Sequence[str]) -> list[Content]:
    """The lines of plotext, with `styles[i - 1]` for its colour number i."""
    return [
        Content.assemble(
            *((text, styles[int(code) - 1] if code not in ("", "0") else "") for code, text in _PIECE.findall(line))
        )
        for line in ansi.rstrip("\n").replace("\x1b[0m\n", "\n").removesuffix("\x1b[0m").split("\n")
    ]


def _gridded(row: Content) -> Content:
    """The row with a faint horizontal line in its empty cells."""
    plain = row.plain.replace(" ", "┈")
    spans = [Span(at, at + 1, RULE) for at, cell in enumerate(row.plain) if cell == " "]
    return Content(plain, [*row.spans, *spans])


def _ruled(row: Content, column: int) -> Content:
    """The row with a piece of a vertical line in this column, if the cell is empty."""
    return Content.assemble(row[:column], ("┊", RULE), row[column + 1 :]) if row.plain[column] == " " else row


def _scales(series: Sequence[Curve], log: bool) -> list[PlotScale]:
    """The scales on the left and on the right. The axis cuts off a band."""
    sides = ([c for c in series if c.side == side] for side in ("left", "right"))
    return [scale_of([(np.asarray(c.values, dtype=float), c.noise) for c in side], log) for side in sides]
