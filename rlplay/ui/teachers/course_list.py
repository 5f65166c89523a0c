"""The whole run by update: how far each moved the target, and of what that consists."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment

from rlplay.trace.teachers import Move
from rlplay.ui.teachers.row_list import RowList
from rlplay.ui.teachers.words import nats, probability

_WIDE = 70
"""Cells of a line from which on it says what a move consists of."""


class CourseList(RowList[Move]):
    """One line for each move, the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self._steered = False  # whether the user has moved the cursor

    def choose(self, at: int) -> None:
        """Put the cursor on a move, where it stays."""
        self._steered = True
        super().choose(at)

    def tell(self, moves: list[Move], update: int, words: str) -> None:
        """Show these moves, the cursor at first on that of `update`; or why there are none."""
        self._steered &= bool(moves)
        if not self._steered:
            self.cursor = next((at for at, move in enumerate(moves) if move.update == update), 0)
        self.rows, self.words = moves, words
        self._largest = max((abs(move.measured) for move in moves), default=1.0) or 1.0
        self.rebuild()

    @property
    def _wide(self) -> bool:
        return self.scrollable_content_region.width >= _WIDE

    def heads(self) -> Iterable[Segment]:
        """What each column has."""
        yield Segment("  update  before  after   moved ", self.palette.muted)
        yield from self.bar_heads()
        yield Segment("   batch earlier    rest" if self._wide else "", self.palette.muted)

    def entry(self, row: Move, here: bool) -> Iterable[Segment]:
        """What one update did."""
        name = str(row.update) if row.update == row.since + 1 else f"{row.since + 1}–{row.update}"
        style = self.palette.strong if here else self.palette.text
        yield Segment("▸ " if here else "  ", self.palette.mark)
        yield Segment(f"{name:>6}  {probability(row.after - row.measured):>6} {probability(row.after):>6}", style)
        yield Segment(f"{nats(row.measured, self._largest):>8} ", self.ink(row.measured))
        yield from self.bar(row.measured)
        if self._wide:
            parts = (row.batch, row.earlier, row.rest)
            yield Segment("".join(f"{nats(each, self._largest):>8}" for each in parts), self.palette.muted)
