"""Cells that can be written in any order."""

from __future__ import annotations

import numpy as np
from textual.content import Content

from rlplay.trace.records import Array
from rlplay.ui.plot.picture import Cell, joined


class Canvas:
    """`height` lines of `width` cells, at first blank. What lies outside is left out."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells: list[list[Cell]] = [[(" ", "")] * width for _ in range(height)]

    def put(self, line: int, column: int, text: str, style: str) -> None:
        """Write `text`, one character a cell."""
        if 0 <= line < self.height:
            for at, character in enumerate(text, column):
                if 0 <= at < self.width:
                    self._cells[line][at] = (character, style)

    def write_over(self, line: int, column: int, text: str, ink: str) -> None:
        """Write `text` and keep the shade behind it."""
        for at, character in enumerate(text, column):
            if 0 <= line < self.height and 0 <= at < self.width:
                _, on, shade = self._cells[line][at][1].partition("on $")
                self.put(line, at, character, f"{ink} {on}{shade}".strip())

    def bitmap(self, line: int, column: int, pixels: Array, style: str) -> None:
        """Draw the pixels [height, width] that are true in half blocks: a cell is one wide and two high."""
        if len(pixels) % 2:
            pixels = np.vstack([pixels, np.zeros_like(pixels[:1])])
        for y, x in np.argwhere(pixels[::2] | pixels[1::2]).tolist():
            upper, lower = pixels[2 * y, x], pixels[2 * y + 1, x]
            self.put(line + y, column + x, "█" if upper and lower else "▀" if upper else "▄", style)

    def content(self) -> list[Content]:
        """The lines."""
        return [joined(line) for line in self._cells]
