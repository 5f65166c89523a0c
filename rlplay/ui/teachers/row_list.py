"""A list with a line of heads and a cursor on one of its rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from rlplay.ui.parts.line_panel import LinePanel

Entry = TypeVar("Entry")
BAR = 7
"""Cells of a bar on each side of the middle."""


class Chosen(Message):
    """The cursor is on another row."""


class RowList(LinePanel, Generic[Entry]):
    """Base of the lists of what moved a target."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "row above", show=False),
        Binding("down", "move(1)", "row below", show=False),
        Binding("pageup", "leaf(-1)", "page up", show=False),
        Binding("pagedown", "leaf(1)", "page down", show=False),
        Binding("home", "move(-1000000)", "first row", show=False),
        Binding("end", "move(1000000)", "last row", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.rows: Sequence[Entry] = []
        self.cursor = 0
        self._largest = 1.0  # nats that a whole bar stands for

    @abstractmethod
    def heads(self) -> Iterable[Segment]:
        """The line above the rows."""

    @abstractmethod
    def entry(self, row: Entry, here: bool) -> Iterable[Segment]:
        """The line of a row, under the cursor or not."""

    def selectable(self, row: Entry) -> bool:  # noqa: ARG002 - for subclasses
        """Whether the cursor can be on a row."""
        return True

    @property
    def chosen(self) -> Entry | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def count(self) -> int:
        """The number of lines."""
        return len(self.rows) + 1 if self.rows else 0

    def line(self, row: int) -> Iterable[Segment]:
        """One line."""
        return self.heads() if row == 0 else self.entry(self.rows[row - 1], row - 1 == self.cursor)

    def choose(self, at: int) -> None:
        """Put the cursor on a row and scroll to it."""
        before, self.cursor = self.cursor, at
        self.redraw(before + 1, at + 1)
        above = at > 0 and not self.selectable(self.rows[at - 1])
        self.reveal(0 if at <= 1 else at if above else at + 1, at + 1)

    def action_leaf(self, pages: int) -> None:
        """Go a page up or down."""
        self.action_move(pages * max(self.scrollable_content_region.height - 2, 1))

    def action_move(self, step: int) -> None:
        """Go `step` rows on, as far as there are rows."""
        places = [at for at, row in enumerate(self.rows) if self.selectable(row)]
        if self.cursor in places:
            self.choose(places[min(max(places.index(self.cursor) + step, 0), len(places) - 1)])
            self.post_message(Chosen())

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse."""
        offset = event.get_content_offset(self)
        at = -1 if offset is None else offset.y + self.scroll_offset.y - 1
        if 0 <= at < len(self.rows) and self.selectable(self.rows[at]):
            self.choose(at)
            self.post_message(Chosen())

    # Drawing

    def bar_heads(self) -> Iterable[Segment]:
        """What the two sides of a bar mean."""
        yield Segment(f"{'lowered':>{BAR}}", self.palette.down_text)
        yield Segment("│", self.palette.faint)
        yield Segment(f"{'raised':<{BAR}}", self.palette.up_text)

    def bar(self, value: float) -> Iterable[Segment]:
        """A bar to the left for less than 0, to the right for more."""
        share = min(abs(value) / self._largest, 1.0)
        full = "▇" * max(round(share * BAR), int(share > 0.02))
        yield Segment((full if value < 0 else "").rjust(BAR), self.palette.down_text)
        yield Segment("│", self.palette.faint)
        yield Segment((full if value > 0 else "").ljust(BAR), self.palette.up_text)

    def ink(self, value: float) -> Style:
        """The style of a signed number."""
        if not abs(value) > 0:
            return self.palette.muted
        return self.palette.up_text if value > 0 else self.palette.down_text
