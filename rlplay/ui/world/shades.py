"""The colour behind a square."""

from __future__ import annotations

from collections.abc import Sequence

_DEEPEST = 45
"""Percent of colour behind the square that is worth most."""
_PALEST = 6
"""The same for the square that is worth least, if all are worth more than nothing, or all less."""


def shade(value: float | None, among: Sequence[float]) -> str:
    """Green for values above 0, red below, the deeper the farther from 0 `among` all values; "" without a value.

    Where all have one sign, the palest is the nearest to 0 of them, so that small differences show.
    """
    if not value or not among:
        return ""
    sizes = [abs(each) for each in among]
    least = min(sizes) if min(among) > 0 or max(among) < 0 else 0.0
    part = (abs(value) - least) / ((max(sizes) - least) or abs(value))
    depth = round((_PALEST if least else 0) + (_DEEPEST - (_PALEST if least else 0)) * min(max(part, 0.0), 1.0))
    return f"on {'$success' if value > 0 else '$error'} {depth}%" if depth else ""


def heat(amount: float, largest: float) -> str:
    """The deeper the larger the amount, which is 0 or more."""
    depth = round(_DEEPEST * min(amount / largest, 1.0)) if largest else 0
    return f"on $secondary {depth}%" if depth else ""


def unshaded(style: str) -> str:
    """A style without its shade, for terminals with few colours; the numbers on the squares remain."""
    return style.partition("on $")[0].strip()
