"""The best moves on a small square: a large arrow for each, and thin lines for the other moves."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rlplay.trace.records import Array
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.canvas import Canvas
from rlplay.ui.world.rose import quarters
from rlplay.worlds.world import DIRECTIONS

_LEAST, _LOW, _MOST = 6, 8, 10
"""Pixels across the smallest head, across one in a low square, which reaches its edges, and across the largest."""
_BEST, _OTHER = "bold $foreground", "$text-muted"


def draw_arrows(
    canvas: Canvas, top: int, left: int, size: Size, chances: Mapping[str, float], best: str, shade: str
) -> None:
    """An arrow for each of the moves in `best`, side by side; the texts at the corners have room beside one.

    Beside a single one, every other move of an eighth or more is a line that begins at its tail: a line of the
    terminal, or two columns, for each quarter. Arrows without room are characters.
    """
    across = min(max(2 * size.height - 2, _LOW), (size.width + 1) // len(best) - 2, _MOST) // 2 * 2
    if across < _LEAST:
        text = " ".join(best)
        canvas.put(top + size.height // 2, left + (size.width - len(text)) // 2, text, f"{_BEST} {shade}".strip())
        return
    pixels = np.zeros((2 * size.height, size.width), bool)
    arrows = [arrow(move, across) for move in best]
    column = (size.width - sum(each.shape[1] for each in arrows) - len(arrows) + 1) // 2
    for each in arrows:
        above = (len(pixels) - len(each)) // 2
        pixels[above : above + len(each), column : column + each.shape[1]] = each
        column += each.shape[1] + 1
    canvas.bitmap(top, left, pixels, f"{_BEST} {shade}".strip())
    if len(best) == 1:
        for (line, cell), sign in _others(pixels, best, chances).items():
            canvas.put(top + line, left + cell, sign, f"{_OTHER} {shade}".strip())


def arrow(move: str, across: int) -> Array:
    """The pixels of an arrow whose head is `across` pixels wide, an even number, and tapers to the two of its shaft."""
    half = across // 2
    down, right = DIRECTIONS[move]
    length = across + (down == 0)  # a cell more, because the head of a horizontal one is cut to half cells
    along, aside = np.mgrid[0:length, 0:across]
    aside = np.abs(aside - half + 0.5)
    pixels: Array = np.where(along < length - half, aside < 1, aside < length - along)
    if down + right < 0:
        pixels = pixels[::-1]
    return pixels if down else pixels.T


def _others(pixels: Array, best: str, chances: Mapping[str, float]) -> dict[tuple[int, int], str]:
    """The cells of the lines for the other moves, in a square with an arrow of these `pixels` [2·lines, cells]."""
    taken = pixels[::2] | pixels[1::2]
    (first, left), (last, right) = np.argwhere(taken).min(0).tolist(), np.argwhere(taken).max(0).tolist()
    line, cell = (first + last) // 2, (left + right) // 2
    line, cell = {"↑": (last - 1, cell), "↓": (first + 1, cell), "→": (line, left + 1), "←": (line, right - 1)}[best]
    cells: dict[tuple[int, int], str] = {}
    for move, chance in chances.items():
        down, across = DIRECTIONS[move]
        y, x = line, cell
        free = []
        while move != best and 0 <= y < taken.shape[0] and 0 <= x < taken.shape[1]:
            free += [(y, x)] * (not taken[y, x])
            y, x = y + down, x + across
        cells |= dict.fromkeys(free[: quarters(chance) * (2 if across else 1)], "━" if across else "┃")
    return cells
