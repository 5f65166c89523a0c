"""Bars in eighths of a cell: vertical within one cell, horizontal over several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rlplay.trace.numbers import number
from rlplay.trace.records import Array

BARS = " ▁▂▃▄▅▆▇█"
"""Nine heights, from nothing to the whole cell."""


def bar(share: float, least: int = 0) -> str:
    """A bar of height `share` of the cell, 0 to 1, and at least `least` eighths."""
    return BARS[max(least, min(8, round(8 * max(share, 0.0))))]


_LEAST_BINS, _MOST_BINS = 4, 12
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def horizontal(value: float, cells: int) -> str:
    """A horizontal bar, `cells` long for 1, padded to that; values from .005 show at least one eighth."""
    eighths = max(round(max(0.0, min(value, 1.0)) * cells * 8), 1 if value >= 0.005 else 0)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(cells)


def stroke(share: float, cells: int, least: int = 0) -> str:
    """A thin horizontal bar, `cells` long for 1, to the nearest half cell, and at least `least` halves; not padded."""
    halves = max(round(share * cells * 2), least)
    return "━" * (halves // 2) + "╸" * (halves % 2)


def moved(old: float, new: float, cells: int) -> tuple[str, str, str]:
    """One horizontal bar for a share before and after: what stayed, what was gained, and what was lost; padded.

    Gains and losses are whole cells, so that a small change does not look like a large one; the end of the share
    afterwards is exact to an eighth of a cell.
    """
    bar = horizontal(new, cells).rstrip()
    stayed = min(len(bar), math.ceil(old * cells)) if new > old else len(bar)
    lost = "░" * max(round(old * cells) - len(bar), 0) if new < old else ""
    return bar[:stayed], bar[stayed:], lost.ljust(cells - len(bar))


def distribution(values: Array, room: int) -> str:
    """A histogram of one line, "0 ▅▁  █ 1", in at most `room` cells; empty if there is no room or no number.

    The bars are equal bins from the smallest to the largest value, which are beside them; of whole numbers, each bin
    has equally many, but the last may have fewer. Equal values are written out, "all 24".
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if not len(known):
        return ""
    low, high = float(known.min()), float(known.max())
    if low == high:
        return f"all {number(low)}" if len(number(low)) + 4 <= room else ""
    ends = number(low), number(high)
    edges = _edges(low, high, min(room - len(" ".join(ends)) - 1, _MOST_BINS), bool((known == np.rint(known)).all()))
    return f"{ends[0]} {heights(np.histogram(known, edges)[0].tolist())} {ends[1]}" if len(edges) else ""


def _edges(low: float, high: float, most: int, whole: bool) -> Array:
    """The edges of at most so many bins; none if they would be too few to show a shape."""
    if most < 2:
        return np.zeros(0)
    wide = math.ceil((high - low + 1) / most)
    bins = math.ceil((high - low + 1) / wide) if whole else most
    if bins < _LEAST_BINS and not (whole and wide == 1):
        return np.zeros(0)
    return low - 0.5 + wide * np.arange(bins + 1) if whole else np.linspace(low, high, bins + 1)


def heights(counts: Sequence[int]) -> str:
    """A bar for each count, the largest as high as the cell; those above 0 have at least an eighth."""
    return "".join(BARS[math.ceil(8 * count / max(*counts, 1))] for count in counts)


def sparkline(values: Sequence[float], cells: int) -> str:
    """The last `cells` of `values` as bars, the smallest of them lowest; a blank for what is not finite."""
    shown = list(values)[-cells:]
    finite = [value for value in shown if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    spread = high - low or 1.0
    return "".join(BARS[1 + round(7 * (value - low) / spread)] if math.isfinite(value) else " " for value in shown)


def tall_bars(values: Sequence[float], low: float, high: float, lines: int = 2) -> list[str]:
    """A bar for each of `values`, `lines` high for `high`, as lines from the top; `low` has an eighth of a cell.

    What is not finite, or beyond the two, is blank.
    """
    most, spread = 8 * lines - 1, high - low or 1.0
    shown = [low <= value <= high for value in values]
    eighths = [1 + round(most * (x - low) / spread) if fits else 0 for x, fits in zip(values, shown, strict=True)]
    return ["".join(BARS[max(0, min(8, each - 8 * line))] for each in eighths) for line in reversed(range(lines))]
