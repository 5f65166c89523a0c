"""Lines, blocks and braille dots as shapes within their cell, so that they join up in any font.

Lengths are shares of the cell: x from 0 to 1 from its left, y from its top.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Rectangle(NamedTuple):
    """A filled rectangle."""

    left: float
    top: float
    right: float
    bottom: float


class Dot(NamedTuple):
    """The centre of a filled circle; its radius is `RADIUS` of the cell's width."""

    x: float
    y: float


RADIUS = 0.15

# The directions of a line from the middle of its cell: up, right, down, left.
_LINES = {
    "─": "rl", "│": "ud", "╭": "rd", "╮": "dl", "╰": "ur", "╯": "ul", "┌": "rd", "┐": "dl", "└": "ur", "┘": "ul",
    "├": "urd", "┤": "udl", "┬": "rdl", "┴": "url", "┼": "urdl", "━": "rl", "┃": "ud",
}  # fmt: skip
_HEAVY = "━┃"
_THIN, _THICK = 0.0625, 0.125
"""Half a line's width, in shares of the cell's width; a cell is twice as high as it is wide."""
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
# Which quarters are filled, as bits: top left, top right, bottom left, bottom right.
_CORNERS = ((0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5))
_QUARTERS = {"▖": 4, "▗": 8, "▘": 1, "▙": 13, "▚": 9, "▛": 7, "▜": 11, "▝": 2, "▞": 6, "▟": 14}
_BLOCKS = {
    **{chr(0x2580 + eighths): [Rectangle(0, 1 - eighths / 8, 1, 1)] for eighths in range(1, 9)},
    **{chr(0x2590 - eighths): [Rectangle(0, 0, eighths / 8, 1)] for eighths in range(1, 8)},
    **{
        name: [Rectangle(x, y, x + 0.5, y + 0.5) for bit, (x, y) in enumerate(_CORNERS) if bits >> bit & 1]
        for name, bits in _QUARTERS.items()
    },
    "▀": [Rectangle(0, 0, 1, 0.5)],
    "▐": [Rectangle(0.5, 0, 1, 1)],
}


def shapes(character: str) -> Sequence[Rectangle | Dot] | None:
    """The shapes of the character; None if it needs a font."""
    if character in _LINES:
        return _line(_LINES[character], _THICK if character in _HEAVY else _THIN)
    if "\u2800" <= character <= "\u28ff":
        bits = ord(character) - 0x2800
        return [Dot(0.27 + 0.46 * x, 0.125 + 0.25 * y) for bit, (x, y) in enumerate(_DOTS) if bits >> bit & 1]
    return _BLOCKS.get(character)


def _line(ways: str, half: float) -> list[Rectangle]:
    x, y = half, half / 2
    boxes = {
        "u": Rectangle(0.5 - x, 0, 0.5 + x, 0.5 + y),
        "d": Rectangle(0.5 - x, 0.5 - y, 0.5 + x, 1),
        "l": Rectangle(0, 0.5 - y, 0.5 + x, 0.5 + y),
        "r": Rectangle(0.5 - x, 0.5 - y, 1, 0.5 + y),
    }
    return [boxes[way] for way in ways]
