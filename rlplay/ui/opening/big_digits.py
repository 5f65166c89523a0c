"""Numbers that can be read from the other end of a room: digits of 3 × 5 points."""

from __future__ import annotations

_POINTS = {
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
    "%": ("# #", "  #", " # ", "#  ", "# #"),
}
_HALVES = {"  ": " ", "# ": "▀", " #": "▄", "##": "█"}


def big(text: str, large: bool) -> list[str]:
    """Digits and % as lines of the same width: 3 lines, or if `large` 5, in which a point is two cells wide."""
    points = [" ".join(_POINTS[each][row] for each in text) for row in range(5)]
    if large:
        return ["".join(("█" if point == "#" else " ") * 2 for point in line) for line in points]
    pairs = zip(points[::2], [*points[1::2], " " * len(points[0])], strict=True)
    return ["".join(_HALVES[upper + lower] for upper, lower in zip(*pair, strict=True)) for pair in pairs]
