"""Bars in eighths of a cell: vertical within one cell, horizontal over several."""

from __future__ import annotations

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
