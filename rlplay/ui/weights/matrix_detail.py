"""The matrix under the cursor: its norms, and in how many directions it moved."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.segment import Segment

from rlplay.trace.numbers import number
from rlplay.trace.text import visible
from rlplay.ui.format.bars import BARS, stroke
from rlplay.ui.parts.made_panel import MadePanel
from rlplay.ui.weights.model_grid import Cell
from rlplay.ui.weights.moved_picture import share

_FEW = 6
"""Lines of a panel below the picture."""
_BAR = 24
_HIGHEST = 8


class MatrixDetail(MadePanel, can_focus=False):
    """Beside the picture, or in a few lines below it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell: Cell | None = None
        self.done = True
        self.whole_is_tied = False

    def tell(self, cell: Cell | None, done: bool, tied: bool) -> None:
        """Show a cell; `done`: no more ranks will come; `tied`: its weights are the head's, too."""
        self.cell, self.done, self.whole_is_tied = cell, done, tied
        self.show()

    def made(self) -> Iterator[list[Segment]]:
        """The names and the numbers, then the singular values."""
        cell = self.cell
        if cell is None:
            return
        matrix, plain, muted = cell.matrix, self.palette.text, self.palette.muted
        yield [Segment(visible(cell.title), self.palette.strong)]
        if self.height > _FEW:
            yield [Segment(visible(matrix.name), muted)]
        tied = " · the head is the same matrix" if self.whole_is_tied else ""
        shape = " × ".join(f"{side:,}" for side in matrix.shape)
        yield [Segment(f"{shape}{tied}", muted)]
        if self.height > _FEW:
            yield []
        before = "0 before" if not cell.size else f"{number(cell.size)} before"
        yield [
            Segment("‖Δ‖ ", muted), Segment(number(cell.moved), plain), Segment("   ‖W‖ ", muted),
            Segment(before, plain), Segment("   ‖Δ‖/‖W‖ ", muted), Segment(share(cell.relative), self.palette.strong),
        ]  # fmt: skip
        yield from self._rank(cell)

    def _rank(self, cell: Cell) -> Iterator[list[Segment]]:
        matrix, muted = cell.matrix, self.palette.muted
        if len(matrix.shape) != 2 or min(matrix.shape) == 1:
            return
        if matrix.rank is None:
            why = "did not move" if not matrix.moved else "not computed: too costly here" if self.done else "…"
            yield [Segment("effective rank of Δ ", muted), Segment(why, self.palette.text)]
            return
        full = min(matrix.shape)
        yield [
            Segment("effective rank of Δ ", muted), Segment(number(matrix.rank, 3), self.palette.strong),
            Segment(f" of {full}  ", muted),
            *self._filled(matrix.rank / full, min(_BAR, max(self.width - 34, 8))),
        ]  # fmt: skip
        yield from self._spectrum(matrix.spectrum, full)

    def _filled(self, part: float, cells: int) -> Iterator[Segment]:
        bar = stroke(part, cells, 1)
        yield Segment(bar, self.palette.text)
        yield Segment("━" * (cells - len(bar)), self.palette.faint)

    def _spectrum(self, shares: list[float], full: int) -> Iterator[list[Segment]]:
        """The singular values as bars, the largest as high as there is room."""
        high = min(self.height - 10, _HIGHEST)
        if high < 2 or not shares:
            return
        step = 2 if 2 * len(shares) <= self.width else 1
        room = min(len(shares), self.width // step)
        yield []
        yield [Segment(f"singular values of Δ, the first {room} of {full}", self.palette.muted)]
        for above in range(high - 1, -1, -1):
            bars = (math.ceil(8 * (high * value / shares[0] - above)) for value in shares[:room])
            yield [Segment("".join(BARS[max(0, min(8, bar))].ljust(step) for bar in bars), self.palette.muted)]
