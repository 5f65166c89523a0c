"""Curves as text: plotext draws the dots; this module adds the scales, gaps, bands and labels.

For the UI's thread only: plotext draws on one global figure. Functions import plotext on use, because the first frame
plots nothing and the import takes a tenth of the start-up time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from textual.content import Content, Span

from rlplay.trace.numbers import NOISE, number
from rlplay.trace.records import Array
from rlplay.ui.plot.picture import AXIS, NOTE, Frame, Picture, Size

MISSING, BAND, RULE = "$error", "on $primary 10%", "$border"
_PIECE = re.compile(r"(?:\x1b\[(?:38;5;)?(\d+)m)*([^\x1b]+)")
_SLIVER = 0.01
"""A side of an axis below this share of the other side is smaller than a dot."""
_NICE = np.array([1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10])


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


class _Axis(NamedTuple):
    """The ends of a scale and their labels; both ends are 0 if all values are 0."""

    low: float
    high: float
    bottom: str
    top: str


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
    labels = [[scale.top, scale.bottom] for scale in scales]
    gutters = [max(each) for each in zip(margins(series, log), room, strict=True)]
    width, height = max(size.width - sum(gutters), 2), max(size.height - 1, 2)
    first, last = span or (min(min(c.updates) for c in series), max(max(c.updates) for c in series))
    frame = Frame(size.width, gutters[0], gutters[0] + width - 1, first, max(last, first + 1))
    notes = [(frame.column(update), sign, NOTE) for update, sign in marks if first <= update <= last]
    bands: list[Span] = []
    _clear(frame, height)
    # A cell shows one curve only: lines win over dots, points over both.
    for index, curve in sorted(enumerate(series), key=lambda item: ("dotted", "line", "points").index(item[1].kind)):
        scale = scales[curve.side == "right"]
        x, y = np.asarray(curve.updates, dtype=float), np.asarray(curve.values, dtype=float)
        unit = _unit(y, scale, log)
        good = np.isfinite(unit)
        notes += [(frame.column(gap), "×", MISSING) for gap in x[~good]]
        edges = None
        if curve.band is not None:
            edges = [np.clip(_unit(y + sign * np.asarray(curve.band), scale, log), 0, 1) for sign in (1, -1)]
        for stretch in np.split(np.arange(len(x)), _breaks(x, good, curve.cuts)):
            run = stretch[good[stretch]]
            if len(run):
                _draw(x[run], unit[run], curve.kind, index + 1, width)
            if edges is not None and len(run):
                wide = run[np.isfinite([edge[run] for edge in edges]).all(axis=0)]
                bands += _band(frame, x[wide], [edge[wide] for edge in edges], height) if len(wide) else []
    _letters(frame, series, [scales[curve.side == "right"] for curve in series], log)
    rows = _rows(plotext.build(), [curve.style for curve in series])
    for cut in sorted({cut for curve in series for cut in curve.cuts if first < cut <= last}):
        rows = [_ruled(row, frame.column(cut - 0.5) - frame.left) for row in rows]
    left, right = ([top, *[""] * (height - 2), bottom] for top, bottom in labels)
    # Labels of two scales take the colours of their curves; those of a single scale stay muted.
    inks = {c.side: c.style for c in reversed(series)} if all(map(any, labels)) else {"left": AXIS, "right": AXIS}
    lines = [
        Content.assemble(
            (f"{a:>{gutters[0] - 1}} " if gutters[0] else "", inks["left"]), row, (b.rjust(gutters[1]), inks["right"])
        )
        for a, row, b in zip(left, rows, right, strict=True)
    ]
    ends = str(first), str(last) if last > first else ""
    axis = frame.axis(*ends, [(_room(frame, ends, notes, len(words)), words, AXIS), *notes])
    return Picture(Content("\n").join([*lines, axis]).add_spans(bands), frame)


def margins(series: Sequence[Curve], log: bool = False) -> Margins:
    """Cells that the labels take on the left and on the right."""
    left, right = (max(len(scale.top), len(scale.bottom)) + 1 if scale.bottom else 0 for scale in _scales(series, log))
    return left, right


def _breaks(x: Array, good: Array, cuts: Sequence[int]) -> list[int]:
    """The indices at which a new stretch of the curve begins: at gaps and at cuts."""
    return sorted({*np.flatnonzero(~good).tolist(), *np.searchsorted(x, np.asarray(cuts, dtype=float)).tolist()})


def _room(frame: Frame, ends: tuple[str, str], notes: Iterable[tuple[int, str, str]], length: int) -> int:
    """The first cell of the axis with `length` free cells; otherwise the cell after the first label."""
    left, right = frame.left + len(ends[0]) + 1, frame.right - len(ends[1])
    taken = {column for column, _, _ in notes}
    free = (at for at in range(left, right - length) if taken.isdisjoint(range(at - 1, at + length + 1)))
    return next(free, left)


def _clear(frame: Frame, height: int) -> None:
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


def _draw(x: Array, y: Array, kind: str, colour: int, width: int) -> None:
    import plotext

    if kind == "points" or len(x) == 1:
        plotext.scatter(x.tolist(), y.tolist(), marker="•", color=colour)
    elif kind == "dotted":
        grid = np.arange(x[0], x[-1], max((x[-1] - x[0]) / width, 1e-9))
        plotext.scatter(grid.tolist(), np.interp(grid, x, y).tolist(), marker="braille", color=colour)
    else:
        if len(x) > 8 * width:
            # The lowest and the highest point of each dot column look the same and cost a fraction of the time.
            parts = np.array_split(np.arange(len(x)), 2 * width)
            keep = np.unique([i for part in parts for i in (part[y[part].argmin()], part[y[part].argmax()])])
            x, y = x[keep], y[keep]
        plotext.plot(x.tolist(), y.tolist(), marker="braille", color=colour)


def _letters(frame: Frame, series: Sequence[Curve], scales: Sequence[_Axis], log: bool) -> None:
    """Draw the letter of each curve, in a separate column as long as columns are free."""
    import plotext

    lettered = [index for index, curve in enumerate(series) if curve.letter]
    taken: set[int] = set()
    for place, index in enumerate(lettered):
        curve = series[index]
        y = _unit(np.asarray(curve.values, dtype=float), scales[index], log)
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


def _band(frame: Frame, x: Array, edges: Sequence[Array], height: int) -> list[Span]:
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


def _ruled(row: Content, column: int) -> Content:
    """The row with a piece of a vertical line in this column, if the cell is empty."""
    return Content.assemble(row[:column], ("┊", RULE), row[column + 1 :]) if row.plain[column] == " " else row


def _scales(series: Sequence[Curve], log: bool) -> list[_Axis]:
    """The scales on the left and on the right."""
    return [_scale([c for c in series if c.side == side], log) for side in ("left", "right")]


def _scale(series: Sequence[Curve], log: bool) -> _Axis:
    """The ends of the axis: zero and a round number, or powers of ten. The axis cuts off a band.

    Rounding noise around 0 gets no scale, and neither does a side too small to see: the label is ≈0.
    """
    every = [(np.asarray(c.values, dtype=float), c.noise) for c in series]
    values = np.concatenate([np.where(np.abs(y) < noise, 0.0, y) for y, noise in every] or [np.zeros(0)])
    values = values[np.isfinite(values) & ((values >= NOISE) | (not log))]
    if not len(values):
        return _Axis(0.0, 0.0, "", "")
    low, high = float(values.min()), float(values.max())
    if log:
        low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** (math.floor(math.log10(high)) + 1)
        return _Axis(low, high, number(low), number(high))
    if low == high == 0:
        return _Axis(0.0, 0.0, "≈0" if any(np.any(y) for y, _ in every) else "0", "")
    ends = -_nice(-low) if -low > _SLIVER * high else 0.0, _nice(high) if high > -_SLIVER * low else 0.0
    bottom, top = (
        number(end) if end or not value else "≈0" for end, value in zip(ends, (min(low, 0), max(high, 0)), strict=True)
    )
    return _Axis(*ends, bottom, top)


def _nice(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return float(min(nice for nice in _NICE if nice * power >= value * (1 - 1e-9)) * power)


def _unit(values: Array, scale: _Axis, log: bool) -> Array:
    low, high = scale.low, scale.high
    with np.errstate(invalid="ignore", divide="ignore"):
        if log and low:  # values that are not positive, and rounding noise, are at minus infinity
            return np.asarray(np.log(np.where(values < NOISE, 0.0, values) / low) / np.log(high / low))
        unit = np.asarray((values - low) / (high - low or 1.0))
        return np.where(np.isfinite(unit), np.clip(unit, 0, 1), unit)
