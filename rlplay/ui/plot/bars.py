"""Bars in eighths of a cell: vertical within one cell, horizontal over several."""

from __future__ import annotations

import math
from collections.abc import Sequence

BARS = " ▁▂▃▄▅▆▇█"
"""Nine heights, from nothing to the whole cell."""


def bar(share: float, least: int = 0) -> str:
    """A bar of height `share` of the cell, 0 to 1, and at least `least` eighths."""
    return BARS[max(least, min(8, round(8 * max(share, 0.0))))]


_EIGHTHS = " ▏▎▍▌▋▊▉█"


def horizontal(value: float, cells: int) -> str:
    """A horizontal bar, `cells` long for 1, padded to that; values from .005 show at least one eighth."""
    eighths = max(round(max(0.0, min(value, 1.0)) * cells * 8), 1 if value >= 0.005 else 0)
    full, part = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[part] if part else "")).ljust(cells)


def moved(old: float, new: float, cells: int) -> tuple[str, str, str]:
    """One horizontal bar for a share before and after: what stayed, what was gained, and what was lost; padded.

    Gains and losses are whole cells, so that a small change does not look like a large one; the end of the share
    afterwards is exact to an eighth of a cell.
    """
    bar = horizontal(new, cells).rstrip()
    stayed = min(len(bar), math.ceil(old * cells)) if new > old else len(bar)
    lost = "░" * max(round(old * cells) - len(bar), 0) if new < old else ""
    return bar[:stayed], bar[stayed:], lost.ljust(cells - len(bar))


def sparkline(values: Sequence[float], cells: int) -> str:
    """The last `cells` of `values` as bars, the smallest of them lowest; a blank for what is not finite."""
    shown = list(values)[-cells:]
    finite = [value for value in shown if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    spread = high - low or 1.0
    return "".join(BARS[1 + round(7 * (value - low) / spread)] if math.isfinite(value) else " " for value in shown)
