"""Vertical bars within one cell."""

from __future__ import annotations

BARS = " ▁▂▃▄▅▆▇█"
"""Nine heights, from nothing to the whole cell."""


def bar(share: float, least: int = 0) -> str:
    """A bar of height `share` of the cell, 0 to 1, and at least `least` eighths."""
    return BARS[max(least, min(8, round(8 * max(share, 0.0))))]
