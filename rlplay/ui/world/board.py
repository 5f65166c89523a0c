"""Where the squares of a map are on a panel."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.ui.plot.picture import Size
from rlplay.worlds.world import World, square_name

LEAST = Size(11, 4)
"""Cells inside the smallest square that has lines around it and a picture in it."""
_FOR_ROSE = 24
"""Cells across a square from which on arms of four lengths can be told apart."""
_LEGEND = (2, 1, 0)
"""Lines below the squares: as many as leave room for pictures."""


_LOW = 6
"""Lines that a low board leaves free, from which on it is in the middle."""


@dataclass(frozen=True)
class Board:
    """`rows` × `columns` squares of `width` × `height` cells each, with a line between them and around them."""

    rows: int
    columns: int
    width: int
    height: int
    left: int
    top: int = 0

    def corner(self, row: int, column: int) -> tuple[int, int]:
        """The line and the column of the first cell inside a square."""
        return self.top + row * (self.height + 1) + 1, self.left + column * (self.width + 1) + 1

    @property
    def lines(self) -> int:
        """Lines of the whole board, and of what is blank above it."""
        return self.top + self.rows * (self.height + 1) + 1

    def square_at(self, x: int, y: int) -> str | None:
        """The square with the cell in column `x` of line `y`; the lines around a square belong to it."""
        row = max(y - self.top - 1, 0) // (self.height + 1) if y >= self.top else -1
        column = max(x - self.left - 1, 0) // (self.width + 1) if x >= self.left else -1
        inside = 0 <= row < self.rows and 0 <= column < self.columns
        return square_name(row, column) if inside else None


def has_rose(width: int) -> bool:
    """Whether squares of this width have an arm for each move; in smaller ones the best has an arrow."""
    return width >= _FOR_ROSE


def board(world: World, size: Size) -> Board | None:
    """The largest board that fits, its squares about as high as wide; None if a picture has no room in a square."""
    if world.arms:
        return None
    fitting = (_fitting(world, Size(size.width, size.height - lines)) for lines in _LEGEND)
    return next(filter(None, fitting), None)


def _fitting(world: World, size: Size) -> Board | None:
    rows, columns = len(world.map), len(world.map[0])
    height, width = (size.height - 1) // rows - 1, (size.width - 1) // columns - 1
    height, width = min(height, max(width * 9 // 20, LEAST.height)), min(width, height * 5 // 2 + 3)
    if height < LEAST.height or width < LEAST.width:
        return None
    across, down = columns * (width + 1) + 1, rows * (height + 1) + 1
    spare = size.height - down
    return Board(rows, columns, width, height, (size.width - across) // 2, spare // 2 if spare >= _LOW else 0)
