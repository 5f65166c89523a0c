"""The model as a picture: what an update moved, matrix by matrix, shaded by the relative change."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message

from rlplay.trace.questions import Weighed
from rlplay.trace.text import visible
from rlplay.ui.format.bars import stroke
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.theme.inks import STEPS
from rlplay.ui.weights.model_grid import PARTS, Cell, Grid, Row, grid

_NARROWEST, _WIDEST, _TALLEST = 7, 15, 3
"""Cells of a terminal for a matrix: its width, and its height at most."""
_TITLE = 11
"""Cells for the name of a row."""


class MovedPicture(MadePanel):
    """A row for each layer from the embedding to the head; arrows move the cursor from matrix to matrix."""

    class Chosen(Message):
        """Another matrix is under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.weighed: Weighed | None = None
        self.grid = Grid((), ())
        self._made_of: tuple[Weighed | None, int] = None, 0  # what the grid is made of: an answer, and columns at most
        self.cursor = 0, 0
        self._moved = False  # whether the user has chosen a cell
        self._rows: list[int] = []  # the row of the grid on each line; −1 where there is none

    def tell(self, weighed: Weighed | None, words: str) -> None:
        """Show what is known, or why nothing is."""
        self.weighed, self.words = weighed, words
        self.show()
        if not self._moved:
            self.call_after_refresh(self._show_cursor)  # the sentences above take their lines first

    @property
    def chosen(self) -> Cell | None:
        """The cell under the cursor."""
        row, column = self.cursor
        cells = self.grid.rows[row].cells if row < len(self.grid.rows) else ()
        return cells[column] if column < len(cells) else None

    def made(self) -> Iterator[list[Segment]]:
        """The heads of the columns, then the rows, as tall as there is room for."""
        self._rows = []
        if self.weighed is None or not self.weighed.weights:
            self.grid, self._made_of = Grid((), ()), (None, 0)
            return
        made_of = self.weighed, max((self.width - _TITLE) // _NARROWEST, 1)
        if made_of[0] is not self._made_of[0] or made_of[1] != self._made_of[1]:
            self.grid, self._made_of = grid(*made_of), made_of
        if not self._moved:
            self.cursor = self._place(self.grid.largest)
        columns, rows = max(len(self.grid.columns), 4), len(self.grid.rows)
        self._wide = max(min((self.width - _TITLE - len(PARTS)) // columns, _WIDEST), _NARROWEST)
        self._tied = self.weighed.tied and any(row.title == "embedding" for row in self.grid.rows)
        rows += self._tied
        room = self.height - 5
        tall = max(min((room + 1) // rows - 1, _TALLEST), 1)
        gap = room + 1 >= rows * (tall + 1)
        for line in self._heads():
            self._rows.append(-1)
            yield line
        for number, row in enumerate(self.grid.rows):
            for at in range(tall):
                self._rows.append(number)
                yield list(self._line(number, row, at, tall))
            if gap:
                self._rows.append(-1)
                yield []
        yield from self._foot(gap)

    def _place(self, wanted: Cell | None) -> tuple[int, int]:
        for number, row in enumerate(self.grid.rows):
            if wanted in row.cells:
                return number, row.cells.index(wanted)
        return 0, 0

    def _heads(self) -> Iterator[list[Segment]]:
        """The parts of a layer, and below them the matrices."""
        if not self.grid.columns:
            return
        parts, labels = [Segment(" " * _TITLE)], [Segment(" " * _TITLE)]
        before = None
        for part, label in self.grid.columns:
            gap = " " if before not in (None, part) else ""
            title = PARTS[part] if part != before else ""
            same = label == PARTS[part]
            parts.append(Segment(gap + ("" if same else title).ljust(self._wide), self.palette.muted))
            labels.append(Segment(gap + set_cell_size(visible(label), self._wide - 1) + " ", self.palette.muted))
            before = part
        yield parts
        yield labels

    def _foot(self, gap: bool) -> Iterator[list[Segment]]:
        """The head, if it is the embedding, and the scale."""
        muted = self.palette.muted
        if self._tied:
            yield [
                Segment(f"{'head':<{_TITLE}}", self.palette.text),
                Segment("the same matrix as the embedding", muted),
            ]
        largest = self.grid.largest
        if largest is None or not largest.moved:
            return
        if gap or not self._tied:
            yield []
        swatches = (Segment("   ", style) for style in self.palette.amount[1:])
        yield [
            Segment(" " * _TITLE), Segment("‖Δ‖/‖W‖  0 ", muted), *swatches,
            Segment(f" {share(largest.relative)}", muted),
        ]  # fmt: skip

    def _line(self, number: int, row: Row, at: int, tall: int) -> Iterator[Segment]:
        named = at == (tall - 1) // 2
        here = number == self.cursor[0]
        style = self.palette.strong if here else self.palette.text
        yield Segment(set_cell_size(visible(row.title) if named else "", _TITLE - 1) + " ", style)
        before = None
        for column, cell in enumerate(row.cells):
            if row.is_layer:
                part = self.grid.columns[column][0]
                yield Segment(" " if before not in (None, part) else "")
                before = part
            wide = self._wide - 1 if row.is_layer else 2 * self._wide - 1
            if cell is None:
                yield Segment(" " * wide)
            else:
                here = (number, column) == self.cursor
                words = self._named(cell, row, wide, here) if named else ""
                words = self._bar(cell, wide) if at == tall - 1 and tall > 1 else words
                style = self._style(cell, here)
                if style.bgcolor is None and not named:
                    style = self.palette.text  # without colours only the words have a shade
                yield Segment(set_cell_size(words, wide), style)
            yield Segment(" ")

    def _named(self, cell: Cell, row: Row, wide: int, here: bool) -> str:
        label = "" if row.is_layer or not cell.label else f"{visible(cell.label)} "
        words = f"{label}{share(cell.relative)}"
        return (f"▸ {words} ◂" if here and len(words) + 4 <= wide else words).center(wide)

    def _bar(self, cell: Cell, wide: int) -> str:
        """How the relative change compares with the largest, to half a cell."""
        largest = self.grid.largest
        if largest is None or not largest.moved or not math.isfinite(cell.relative):
            return ""
        return f" {stroke(cell.relative / largest.relative, wide - 2)}"

    def _style(self, cell: Cell, here: bool) -> Style:
        if here:
            return self.palette.cursor
        largest = self.grid.largest
        top = largest.relative if largest is not None else 0.0
        if not cell.moved or not top:
            return self.palette.muted
        level = STEPS if not math.isfinite(cell.relative) else math.ceil(STEPS * cell.relative / top - 1e-9)
        return self.palette.amount[max(min(level, STEPS), 1)]

    # Keys and mouse

    def go(self, down: int, right: int) -> None:
        """Move the cursor."""
        rows = self.grid.rows
        if not rows:
            return
        row = max(0, min(self.cursor[0] + down, len(rows) - 1))
        cells = rows[row].cells
        column = min(self.cursor[1], len(cells) - 1)
        step = right or 1
        column = max(0, min(column + right, len(cells) - 1))
        while cells[column] is None and 0 <= column + step < len(cells):
            column += step
        self._put(row, column)

    def _put(self, row: int, column: int) -> None:
        if self.grid.rows[row].cells[column] is not None:
            self.cursor, self._moved = (row, column), True
            self.show()
            self._show_cursor()
            self.post_message(self.Chosen())

    def _show_cursor(self) -> None:
        lines = [at for at, row in enumerate(self._rows) if row == self.cursor[0]]
        if lines:
            self.reveal(lines[0], lines[-1])

    def on_click(self, event: events.Click) -> None:
        """Choose the matrix that was clicked."""
        offset = event.get_content_offset(self)
        line = -1 if offset is None else offset.y + self.scroll_offset.y
        row = self._rows[line] if 0 <= line < len(self._rows) else -1
        if offset is None or row < 0:
            return
        x = _TITLE
        before = None
        for at, cell in enumerate(self.grid.rows[row].cells):
            if self.grid.rows[row].is_layer:
                part = self.grid.columns[at][0]
                x += before not in (None, part)
                before = part
            wide = self._wide * (1 if self.grid.rows[row].is_layer else 2)
            if x <= offset.x < x + wide - 1 and cell is not None:
                self._put(row, at)
            x += wide


def share(relative: float) -> str:
    """A relative change as a percentage with two significant digits: .49 %, 12 %; "from 0" where all was 0 before."""
    if math.isnan(relative):
        return "0"
    if math.isinf(relative):
        return "from 0"
    if relative == 0:
        return "0"
    if relative < 5e-5:
        return "<.01 %"
    percent = 100 * relative
    digits = 2 if percent < 0.995 else 1 if percent < 9.95 else 0
    return f"{percent:.{digits}f} %".lstrip("0") if percent < 0.995 else f"{percent:.{digits}f} %"
