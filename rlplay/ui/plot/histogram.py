"""Histograms as text, in eighths of a cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from textual.content import Content

from rlplay.trace.numbers import number
from rlplay.trace.records import Array
from rlplay.ui.format.bars import BARS
from rlplay.ui.plot.picture import AXIS, Axes, Cell, Picture, Size, joined
from rlplay.ui.plot.scale import tick

_BINS = 40
"""Bars, where each has two cells or more. With limits at 2.5 widths of a band, its bounds are between two bars."""
_LABEL, _WIDE = 5, 3
"""Cells for the label at the left; of a bar from which on a space follows it."""


@dataclass(frozen=True)
class HistogramStyle:
    """Styles of the bars and of the bars in front; with `log`, heights are logarithms of 1 + count."""

    limits: tuple[float, float]
    whole: str
    front: str
    log: bool = True


def histogram(values: Array, front: Array, bounds: Sequence[float], size: Size, style: HistogramStyle) -> Picture:
    """The distribution of `values` within the style's limits, with that of the `front` values drawn over it.

    Values beyond the limits count at the edge, marked ≤ or ≥. `bounds` are drawn as lines. The label at the left is the
    number of the highest bar.
    """
    height = max(size.height - 1, 1)
    # As doubles: a limit rounded to single precision could lie outside the edges, and its bar would be lost.
    parts = [np.clip(part.astype(np.float64), *style.limits) for part in (values, front)]
    room = max(size.width - _LABEL, 2)
    bins = _BINS if room >= 2 * _BINS else room
    edges = np.linspace(*style.limits, bins + 1)
    counts = [np.histogram(part, edges)[0] for part in parts]
    highest = max(int(counts[0].max()), 1)
    labels = [tick(highest), *[""] * (height - 2), "0"][:height]
    frame = Axes(size.width, size.width - room, size.width - 1, *style.limits)
    shares = [np.log1p(count) / np.log1p(highest) if style.log else count / highest for count in counts]
    whole, before = (np.ceil(share * height * 8).astype(int).tolist() for share in shares)
    fences = {frame.column(bound) for bound in bounds}
    starts = np.rint(np.arange(bins + 1) * room / bins).astype(int)
    bars = np.repeat(np.arange(bins), np.diff(starts))
    if room >= _WIDE * bins:
        bars[starts[1:] - 1] = -1  # a space after each bar
    lines = []
    for row, label in zip(reversed(range(height)), labels, strict=True):
        cells = [(character, AXIS) for character in f"{label:>{frame.left - 1}} "]
        for column, at in enumerate(bars.tolist(), frame.left):
            bar = None if at < 0 else _cell(whole[at] - 8 * row, before[at] - 8 * row, style)
            cells.append(bar or ("│" if column in fences else " ", AXIS))
        lines.append(joined(cells))
    ends = ("≤" * bool((values < style.limits[0]).any()), "≥" * bool((values > style.limits[1]).any()))
    apart = all(abs(frame.column(1.0) - at) > _LABEL for at in (*fences, frame.right))
    named = [*bounds, *([1.0] if apart and 1.0 not in bounds else [])]
    notes = [(frame.column(at) - 1, number(at), AXIS) for at in named if style.limits[0] < at < style.limits[1]]
    axis = frame.axis(ends[0] + number(style.limits[0]), ends[1] + number(style.limits[1]), notes)
    return Picture(Content("\n").join([*lines, axis]), frame)


def _cell(whole: int, front: int, style: HistogramStyle) -> Cell | None:
    if front > 0:
        return BARS[min(front, 8)], style.front + (f" on {style.whole}" if whole >= 8 > front else "")
    return (BARS[min(whole, 8)], style.whole) if whole > 0 else None
