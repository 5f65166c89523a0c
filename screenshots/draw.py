"""Draws a terminal's screen as a picture, as the playground draws its own."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from rlplay.ui.screenshot.cells import Cell, CellStyle, Grid
from rlplay.ui.screenshot.png import PngRenderer

_NAMED = {
    "black": "#000000", "red": "#cd3131", "green": "#0dbc79", "brown": "#e5e510",
    "blue": "#2472c8", "magenta": "#bc3fbc", "cyan": "#11a8cd", "white": "#e5e5e5",
    "brightblack": "#666666", "brightred": "#f14c4c", "brightgreen": "#23d18b", "brightbrown": "#f5f543",
    "brightblue": "#3b8eea", "brightmagenta": "#d670d6", "brightcyan": "#29b8db", "brightwhite": "#ffffff",
}  # fmt: skip


Part = tuple[int, int, int, int]
"""Cells of a screen: the first column and line, and those after the last."""


def paint(screen: Any, out: Path, part: Part | None = None) -> None:
    """Write a `pyte` screen, or a part of it, to `out` as a PNG of double size, in place of one that is there."""
    out.unlink(missing_ok=True)
    grid = grid_of(screen)
    PngRenderer().paint(grid if part is None else cropped(grid, part), out, reduced=1)


def cropped(grid: Grid, part: Part) -> Grid:
    """The cells of a part."""
    left, top, right, bottom = part
    lines = []
    for line in grid[top:bottom]:
        columns = accumulate((cell.width for cell in line), initial=0)
        lines.append([cell for cell, column in zip(line, columns, strict=False) if left <= column < right])
    return lines


def grid_of(screen: Any) -> Grid:
    """A `pyte` screen's cells."""
    lines = ([screen.buffer[y][x] for x in range(screen.columns)] for y in range(screen.lines))
    # The second column of a wide character has no text of its own.
    return [[Cell(cell.data, max(cell_len(cell.data), 1), _look(cell)) for cell in line if cell.data] for line in lines]


def _look(cell: Any) -> CellStyle:
    ink, ground = _colour(cell.fg, "#e0e0e0"), _colour(cell.bg, "#101010")
    if cell.reverse:
        ink, ground = ground, ink
    return CellStyle(ink, ground, cell.bold, cell.italics, cell.underscore, cell.strikethrough)


def _colour(name: str, default: str) -> str:
    return default if name == "default" else _NAMED.get(name, "#" + name)
