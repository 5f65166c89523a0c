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


@dataclass(frozen=True)
class HistogramStyle:
    """Styles of the bars and of the bars in front; with `log`, heights are logarithms of 1 + count."""

    limits: tuple[float, float]
    whole: str
    front: str
    log: bool = True


def histogram(values: Array, front: Array, bounds: Sequence[float], size: Size, style: HistogramStyle) -> Picture:
    """The distribution of `values` within the style's limits, with that of the `front` values drawn over it.

    Values beyond the limits count at the edge, marked ≤ or ≥. `bounds` are drawn as lines.
    """
    width, height = size.width, max(size.height - 1, 1)
    frame = Axes(width, 0, width - 1, *style.limits)
    edges = np.linspace(*style.limits, width + 1)
    # As doubles: a limit rounded to single precision could lie outside the edges, and its bar would be lost.
    parts = (np.clip(part.astype(np.float64), *style.limits) for part in (values, front))
    counts = [np.histogram(part, edges)[0] for part in parts]
    highest = max(int(counts[0].max()), 1)
    shares = [np.log1p(count) / np.log1p(highest) if style.log else count / highest for count in counts]
    whole, before = (np.ceil(share * height * 8).astype(int).tolist() for share in shares)
    fences = {frame.column(bound) for bound in bounds}
    lines = [
        joined(
            _cell(whole[at] - 8 * row, before[at] - 8 * row, style) or ("│" if at in fences else " ", AXIS)
            for at in range(width)
        )
        for row in reversed(range(height))
    ]
    ends = ("≤" * bool((values < style.limits[0]).any()), "≥" * bool((values > style.limits[1]).any()))
    notes = [(frame.column(bound) - 1, number(bound), AXIS) for bound in bounds]
    axis = frame.axis(ends[0] + number(style.limits[0]), ends[1] + number(style.limits[1]), notes)
    return Picture(Content("\n").join([*lines, axis]), frame)


def _cell(whole: int, front: int, style: HistogramStyle) -> Cell | None:
    if front > 0:
        return BARS[min(front, 8)], style.front + (f" on {style.whole}" if whole >= 8 > front else "")
    return (BARS[min(whole, 8)], style.whole) if whole > 0 else None
