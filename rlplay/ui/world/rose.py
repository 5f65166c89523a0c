"""The chances of the moves on a square: arms from its middle, as long as a move is likely."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlplay.trace.records import Array
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.canvas import Canvas
from rlplay.worlds.world import DIRECTIONS

LENGTHS = 4
_LEAST = 0.01
"""Chances from here on, and too small for the shortest arm, show as a dot."""
_PLAIN, _BEST = "$text-muted", "bold $foreground"
_LINES_PER_STROKE = 5
"""An arm is two pixels thick for every so many lines of its square. A cell is one pixel wide and two high."""


def quarters(chance: float) -> int:
    """A chance to the nearest of four lengths, 0 to 4."""
    return int(chance * LENGTHS + 0.5)


def draw_rose(
    canvas: Canvas, top: int, left: int, size: Size, chances: Mapping[str, float], best: str, shade: str
) -> None:
    """An arm for each move in a square of this `size`; the moves in `best` are bright and have a head."""
    plain, bright = (np.zeros((2 * size.height, size.width), bool) for _ in range(2))
    for move, chance in chances.items():
        if quarters(chance):
            (bright if move in best else plain)[_arm(size, move, quarters(chance), move in best)] = True
    for pixels, ink in ((plain, _PLAIN), (bright, _BEST)):
        canvas.bitmap(top, left, pixels, f"{ink} {shade}".strip())
    for move, chance in chances.items():
        if not quarters(chance) and chance >= _LEAST:
            _dot(canvas, top, left, size, move, f"{_PLAIN} {shade}".strip())


def _arm(size: Size, move: str, length: int, head: bool) -> Array:
    """The pixels of an arm [2·lines, cells]: a bar of one of `LENGTHS` lengths, whose end is a head, if it has one."""
    down, right = DIRECTIONS[move]
    y, x = np.mgrid[0 : 2 * size.height, 0 : size.width]
    y, x = y - (2 * (size.height // 2) + size.height % 2 - 0.5), x - (size.width // 2 - 0.5)
    half = thickness(size) / 2
    along, aside = y * down + x * right - half, np.abs(x * down + y * right)
    reach = round(length * longest(size) / LENGTHS)
    bar: Array = (along > 0) & (along < reach) & (aside < half)
    if not head:
        return bar
    tip = reach - along  # the head widens by a pixel for each pixel from its tip, to twice the bar
    return np.asarray((bar & (tip > 2 * half)) | ((along > 0) & (tip > 0) & (tip < 2 * half) & (aside < tip + 0.5)))


def thickness(size: Size) -> int:
    """Pixels across an arm."""
    return 2 * max(min(size.height, size.width // 2) // _LINES_PER_STROKE, 1)


def longest(size: Size) -> int:
    """Pixels of an arm of full length: equal in all directions."""
    return (min(2 * size.height, size.width) - thickness(size)) // 2


def _dot(canvas: Canvas, top: int, left: int, size: Size, move: str, style: str) -> None:
    down, right = DIRECTIONS[move]
    away = 1 + thickness(size) // 2
    canvas.put(
        top + (size.height - 1) // 2 + down * ((away + 1) // 2),
        left + size.width // 2 - (right < 0) + right * away,
        "·",
        style,
    )
