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


_OF_256 = {
    #                    dark                    light
    "$success":   (("#005f5f", "#00875f"), ("#d7ffff", "#afd7d7")),
    "$error":     (("#5f0000", "#870000"), ("#ffd7d7", "#ffafaf")),
    "$secondary": (("#00005f", "#005f87"), ("#d7d7ff", "#afafff")),
}  # fmt: skip
"""A pale and a deep shade among a terminal's 256 colours, in which a mixed one would lose its hue."""
_FROM = 12, 30
"""Percent from which on a shade is pale, and deep."""


def of_256(style: str, dark: bool) -> str:
    """A style with its shade as a terminal with 256 colours can show it."""
    ink, on, name = style.partition("on $")
    colour, _, percent = name.partition(" ")
    if not on or f"${colour}" not in _OF_256 or not percent.endswith("%"):
        return style
    reached = sum(int(percent[:-1]) >= least for least in _FROM)
    return f"{ink}on {_OF_256[f'${colour}'][not dark][reached - 1]}" if reached else ink.strip()
