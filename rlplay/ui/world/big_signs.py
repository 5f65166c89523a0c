"""Numbers and signs for the back of a room: bitmaps of spaces and #, two pixels to the height of a cell."""

from __future__ import annotations

import numpy as np

from rlplay.trace.records import Array

_ROWS = 5
_GLYPHS = {
    "0": ("###", "# #", "# #", "# #", "###"),
    "1": (" # ", "## ", " # ", " # ", "###"),
    "2": ("###", "  #", "###", "#  ", "###"),
    "3": ("###", "  #", "###", "  #", "###"),
    "4": ("# #", "# #", "###", "  #", "  #"),
    "5": ("###", "#  ", "###", "  #", "###"),
    "6": ("###", "#  ", "###", "# #", "###"),
    "7": ("###", "  #", "  #", "  #", "  #"),
    "8": ("###", "# #", "###", "# #", "###"),
    "9": ("###", "# #", "###", "  #", "###"),
    ".": (" ", " ", " ", " ", "#"),
    "+": ("   ", " # ", "###", " # ", "   "),
    "−": ("  ", "  ", "##", "  ", "  "),
}


def _pixels(*rows: str) -> Array:
    return np.array([[pixel == "#" for pixel in row] for row in rows])


STAR = _pixels(
    "    #    ",
    "   ###   ",
    "#########",
    " ####### ",
    "  #####  ",
    " ### ### ",
    " #     # ",
)
HOLE = _pixels(
    "  #####  ",
    " #     # ",
    "#       #",
    "#       #",
    " #     # ",
    "  #####  ",
)
WALKER = _pixels(
    " ## ",
    " ## ",
    "####",
    " ## ",
    "#  #",
    "#  #",
)


def readable(text: str) -> bool:
    """Whether every sign of a text can be large."""
    return set(text) <= set(_GLYPHS)


def big(text: str) -> Array:
    """A number as pixels [5, width]."""
    return _pixels(*(" ".join(_GLYPHS[sign][row] for sign in text) for row in range(_ROWS)))
