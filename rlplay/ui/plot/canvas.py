"""The cells of a plot: solid colour in eighths of a cell, thin lines in dots over it, and characters over both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlplay.trace.records import Array
from rlplay.ui.format.bars import BARS

DOTS = np.array([[0x40, 0x80], [0x04, 0x20], [0x02, 0x10], [0x01, 0x08]])
"""The dots of a braille cell, by row from the bottom and by column."""
_PART = 8
"""Eighths of a cell."""


class Canvas:
    """`width` × `height` cells. Rows and eighths count from the bottom; what is painted later lies on top.

    A cell of a terminal has two colours. Where a line, what is under it and what is over it meet in one cell, the line
    keeps its edge, and the smaller of the other two gives way.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._styles, self._lines = [""], [False]
        self._eighths = np.zeros((height * _PART, width), dtype=np.int16)
        self._dots = np.zeros((height, width), dtype=np.int64)
        self._dot_inks = np.zeros((height, width), dtype=np.int16)
        self._written: list[tuple[int, int, str, int]] = []

    def _ink(self, style: str, line: bool = False) -> int:
        if style not in self._styles:
            self._styles.append(style)
            self._lines.append(line)
        return self._styles.index(style)

    def paint(self, columns: Array, low: Array, high: Array, style: str, line: bool = False,
              on: Array | None = None) -> None:  # fmt: skip
        """Colour the eighths from `low` up to `high` in each of the `columns`, int [n] each; `on` leaves some out."""
        at = np.arange(len(self._eighths))[:, None]
        inside = (at >= low) & (at < high)
        part = self._eighths[:, columns]
        part[inside if on is None else inside & on] = self._ink(style, line)
        self._eighths[:, columns] = part

    def dot(self, columns: Array, rows: Array, style: str) -> None:
        """Set dots, two to a cell across and four up, int [n] each."""
        cells = rows // 4, columns // 2
        np.bitwise_or.at(self._dots, cells, DOTS[rows % 4, columns % 2])
        self._dot_inks[cells] = self._ink(style)

    def write(self, column: int, row: int, character: str, style: str) -> None:
        """Put a character into a cell; it lies over everything."""
        self._written.append((column, row, character, self._ink(style)))

    def middle(self) -> tuple[Array, list[str]]:
        """The index of the style in the middle of each cell, top line first; and the styles, of which 0 is none."""
        return self._cells()[::-1, :, _PART // 2], self._styles

    def longest(self, style: str) -> tuple[range, int]:
        """The columns and the row of the longest stretch of whole cells in a style; no columns if there is none."""
        cells = self._cells()
        whole = (cells == self._ink(style)).all(axis=-1)
        best, found = range(0), 0
        for row, line in enumerate(whole):
            edges = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(int), [0]]))).reshape(-1, 2)
            for start, stop in edges.tolist():
                if stop - start > len(best):
                    best, found = range(start, stop), row
        return best, found

    def free(self, columns: range, row: int) -> bool:
        """Whether nothing but areas is in these cells of a row."""
        cells = self._cells()[row, columns.start : columns.stop]
        taken = any(at == row and column in columns for column, at, _, _ in self._written)
        lined = np.array(self._lines)[cells].any() or self._dots[row, columns.start : columns.stop].any()
        return not (taken or lined)

    def rule(self, row: int, style: str) -> None:
        """Draw a faint horizontal line through the cells of a row that hold no line."""
        self._rules(row, slice(None), "┈", style)

    def fence(self, column: int, style: str) -> None:
        """Draw a faint vertical line through the cells of a column that hold no line."""
        self._rules(slice(None), column, "┊", style)

    def _rules(self, row: int | slice, column: int | slice, character: str, style: str) -> None:
        cells = self._cells()[row, column]
        free = (cells == cells[..., :1]).all(axis=-1) & ~np.array(self._lines)[cells[..., 0]]
        free &= self._dots[row, column] == 0
        places = np.argwhere(np.atleast_1d(free))[:, 0].tolist()
        fixed = (lambda at: (at, row)) if isinstance(row, int) else (lambda at: (column, at))
        written = {(at, line) for at, line, _, _ in self._written}
        for at in places:
            if fixed(at) not in written:
                self._written.append((*fixed(at), character, self._ink(style)))

    def _cells(self) -> Array:
        return self._eighths.reshape(self.height, _PART, self.width).transpose(0, 2, 1)

    def finished(self) -> tuple[Array, Array, list[str]]:
        """The characters of the cells, top line first, the index of each one's style, and the styles."""
        cells, lines = self._cells(), np.array(self._lines)
        cut, low, high = _two_colours(cells, lines)
        characters = np.array(list(BARS))[cut]
        ink, ground, turned = low, high, np.zeros_like(cut, dtype=bool)
        whole = cut == _PART
        soft = whole & ~lines[low]  # an area: the cell's ground, so that something may be written on it
        characters[soft] = " "
        ink, ground = np.where(soft, 0, ink), np.where(whole, np.where(soft, low, 0), ground)
        hanging = ~whole & (low == 0) & (high > 0)
        for eighths, character in ((4, "▀"), (7, "▔")):
            plain = hanging & (cut == eighths)
            characters[plain], hanging = character, hanging & ~plain
            ink, ground = np.where(plain, high, ink), np.where(plain, 0, ground)
        ink, ground, turned = np.where(hanging, high, ink), np.where(hanging, 0, ground), turned | hanging
        bare = (self._dots > 0) & ~lines[low] & ~lines[high]
        characters = np.where(bare, (0x2800 + self._dots).astype("<u4").view("<U1"), characters)
        ink, turned = np.where(bare, self._dot_inks, ink), turned & ~bare
        ground = np.where(bare, np.where(cut >= _PART // 2, low, high), ground)
        for column, row, character, style in self._written:
            below = cells[row, column, _PART // 2]
            characters[row, column], ink[row, column], turned[row, column] = character, style, False
            ground[row, column] = 0 if lines[below] else below
        return self._styled(characters[::-1], ink[::-1], ground[::-1], turned[::-1])

    def _styled(self, characters: Array, ink: Array, ground: Array, turned: Array) -> tuple[Array, Array, list[str]]:
        count = len(self._styles)
        codes, places = np.unique((ink * count + ground) * 2 + turned, return_inverse=True)
        styles = []
        for code in codes.tolist():
            front, back = divmod(code // 2, count)
            behind = f" on {self._styles[back]}" if back else ""
            styles.append(f"{self._styles[front]}{behind}{' reverse' if code % 2 else ''}".strip())
        return characters, places.reshape(characters.shape), styles


def _two_colours(cells: Array, lines: Array) -> tuple[Array, Array, Array]:
    """For cells [..., 8] of colours: how many eighths from the bottom the lower colour fills, and both colours."""
    change = cells[..., 1:] != cells[..., :-1]
    count = change.sum(axis=-1)
    first = np.where(count > 0, change.argmax(axis=-1) + 1, _PART)
    last = np.where(count > 0, _PART - 1 - change[..., ::-1].argmax(axis=-1), _PART)
    low, high = cells[..., 0], cells[..., -1]
    middle = np.take_along_axis(cells, np.minimum(first, _PART - 1)[..., None], axis=-1)[..., 0]
    upper = np.take_along_axis(cells, np.maximum(last - 1, 0)[..., None], axis=-1)[..., 0]
    several = count > 1
    inner, under, over = lines[middle] | lines[upper], lines[low], lines[high]
    down = several & inner & ~(under & ~over) & ((first <= _PART - last) | over)  # the inner line reaches the bottom
    up = several & inner & ~down
    apart = several & ~inner & under & over
    cut = np.select([down, up, apart, several & under], [last, first, (first + last) // 2, first], last)
    found = cut, np.where(down, upper, low), np.where(up, middle, high)
    for place in np.argwhere(count > 2):
        _crossing(cells[tuple(place)], lines, tuple(place), found)
    return found


def _crossing(cell: Array, lines: Array, place: Sequence[int], found: tuple[Array, Array, Array]) -> None:
    """Where two lines meet in a cell, it shows both of them and nothing else."""
    colours = [colour for colour in dict.fromkeys(cell.tolist()) if lines[colour]]
    if len(colours) > 1:
        cut, low, high = found
        cut[place] = int(np.flatnonzero(cell == colours[1])[0]) or 1
        low[place], high[place] = colours[:2]
