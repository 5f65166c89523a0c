"""The list of updates: one line each; the last line is the live run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message

from rlplay.trace.history import History, Mark
from rlplay.trace.text import visible
from rlplay.ui.format.bars import stroke
from rlplay.ui.format.legend import EVENT_MARKS, LOOKED_AT, MARKED
from rlplay.ui.format.number_cells import plain, signed
from rlplay.ui.format.typed_number import TypedNumber
from rlplay.ui.parts.line_panel import LinePanel
from rlplay.ui.timeline.update_table import SCORES, UpdateRow, UpdateTable, short_heading

_BAR, _LONG_BAR = 16, 40
_FIXED, _CHANGES = 31, 30
"""Cells of update, score and held-out score; and those kept for what changed."""
_NARROW, _LONG = 100, 200
"""Below the first width the list drops the bars, to make room for the changes; from the second on they are long."""


class Updates(LinePanel):
    """All updates of a run. The cursor is an update's number, or None for the live run."""

    EMPTY = "Updates appear here after the first is finished."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "one up", show=False),
        Binding("down", "move(1)", "one down", show=False),
        Binding("pageup", "leaf(-1)", "page up", show=False),
        Binding("pagedown", "leaf(1)", "page down", show=False),
        Binding("home", "put(0)", "the start", show=False),
        Binding("end", "put(-1)", "now", show=False),
        Binding("enter", "choose", "look at it", show=False),
        *(Binding(str(digit), f"type({digit})", "the update of this number", show=False) for digit in range(10)),
        Binding("s", "step", "step: the typed number is its trainer's", show=False),
    ]

    class Moved(Message):
        """The cursor moved to another line."""

    class Chosen(Message):
        """The user chose the update under the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.timeline = UpdateTable(History(), 0)
        self.cursor: int | None = None
        self.looking: int | None = None
        self.now = "● now"
        self.marked: int | None = None
        self._typed = TypedNumber()

    @property
    def row(self) -> UpdateRow | None:
        """The row under the cursor; None on the line of the live run."""
        return None if self.cursor is None else self.timeline.rows[self.cursor]

    def show(self, timeline: UpdateTable, looking: int | None, now: str) -> None:
        """Show the updates. The cursor stays on its update, or on the last line (`now`) if it was there."""
        if timeline.reached != self.timeline.reached:
            self.refresh(layout=True)
        self.timeline, self.looking, self.now = timeline, looking, now
        if self.cursor is not None and self.cursor > timeline.reached:
            self.cursor = None
        self.rebuild()
        if self.cursor is None:
            self.reveal(self.count() - 1)

    def mark(self, number: int | None) -> None:
        """Mark an update as the first of two, or none."""
        self.marked = number
        self.rebuild()

    def count(self) -> int:
        """The number of lines: the start, the updates and the live run."""
        return self.timeline.reached + 2

    def put(self, cursor: int | None) -> None:
        """Put the cursor on an update and scroll to it."""
        before, self.cursor = self._place, cursor
        self.redraw(before, self._place)
        self.reveal(self._place)
        self.post_message(self.Moved())

    @property
    def _place(self) -> int:
        return self.count() - 1 if self.cursor is None else self.cursor

    def action_move(self, step: int) -> None:
        """Move the cursor by `step` lines."""
        self.action_put(min(max(self._place + step, 0), self.count() - 1))

    def action_leaf(self, step: int) -> None:
        """Move the cursor a page up or down."""
        self.action_move(step * max(self.scrollable_content_region.height - 1, 1))

    def action_put(self, line: int) -> None:
        """Go to a line; −1 is the last."""
        self.put(None if line in (-1, self.count() - 1) else line)

    def action_type(self, digit: int) -> None:
        """Go to the update whose number is typed, or whose step of its trainer is, if no update has that number."""
        clock, reached = self.timeline.history.clock, self.timeline.reached
        number = self._typed.add(digit, self.cursor, max(reached, clock.last if clock.differs else 0))
        self._typed.place = number if number <= reached else clock.update_at(number)
        self.put(self._typed.place)

    def action_step(self) -> None:
        """Take the typed number, or else that of the update under the cursor, as that of a step of its trainer."""
        clock = self.timeline.history.clock
        number = self._typed.typed if self._typed.place == self.cursor else self.cursor
        place = clock.update_at(number) if clock.differs and number is not None else None
        if place is None:
            self.notify("No update has this step." if clock.differs else "Here a step has its update's number.")
            return
        self._typed.place = place
        self.put(place)

    def action_choose(self) -> None:
        """Choose the update under the cursor."""
        self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the line under the mouse; a second click chooses it."""
        offset = event.get_content_offset(self)
        line = -1 if offset is None else offset.y + self.scroll_offset.y
        if not 0 <= line < self.count():
            return
        self.action_put(line)
        if event.chain > 1:
            self.action_choose()

    def clipping(self) -> tuple[str, str]:
        """The text to copy: the table."""
        lines = ("".join(segment.text for segment in self.line(row)).rstrip() for row in range(self.count()))
        return "the timeline", "\n".join([self.head, *lines])

    @property
    def head(self) -> str:
        """The names of the columns."""
        score = SCORES[self.timeline.score]
        further = "".join(f"{title:>{width}}" for title, width in self._further)
        held_out = f"{'held out':>10}" * self.timeline.evaluated
        step = f"{'step':>{self._step}}" if self._step else ""
        return f"{'update':>8}  {step} {score:>10}{self._gap}{held_out}{further}  changed there"

    @property
    def _step(self) -> int:
        """Cells for the trainer's step of an update; 0 where it has the same number."""
        clock = self.timeline.history.clock
        return max(len(f"{clock.last:,}") + 2, 6) if clock.differs else 0

    @property
    def _further(self) -> list[tuple[str, int]]:
        """The headings and widths of the further columns, as many as leave room for what changed."""
        room = self.size.width - _FIXED - self._step - len(self._gap) - _CHANGES
        found: list[tuple[str, int]] = []
        for name in self.timeline.columns:
            title = visible(short_heading(name))
            room -= (width := max(cell_len(title) + 2, 11))
            if room < 0:
                break
            found.append((title, width))
        return found

    @property
    def _gap(self) -> str:
        width = self.size.width
        return " " * (0 if width < _NARROW else 2 + (_BAR if width < _LONG else _LONG_BAR))

    def line(self, row: int) -> Iterable[Segment]:
        """One update: what is on disk, its numbers, and the changed settings."""
        here = row == self._place
        yield Segment("▸" if here else " ", self.palette.mark)
        if row > self.timeline.reached:
            ink = self.palette.cursor if here else self.palette.good if self.looking is None else self.palette.text
            yield Segment(f" {self.now} ", ink)
            yield Segment(f"  {_listed(self.timeline.coming)}", self.palette.text)
            return
        shown = self.timeline.rows[row]
        name = "start" if row == 0 else str(row)
        looked_at = row == self.looking
        ink = self.palette.cursor if here else self.palette.strong if looked_at else self.palette.text
        yield Segment(f"{name:>7} ", ink if row == 0 or shown.tokens or here else self.palette.muted)
        if row == self.marked:
            yield Segment(MARKED, self.palette.strong)
        else:
            yield Segment(LOOKED_AT if looked_at else "●" if shown.snapshot else "·" if shown.tokens else " ",
                          self.palette.strong if looked_at else self.palette.muted)  # fmt: skip
        if self._step:
            steps = self.timeline.history.clock.steps(row)
            yield Segment(f"{'' if steps is None else f'{steps[1]:,}':>{self._step}}", self.palette.muted)
        yield Segment(f" {_written(shown.score, 3):>10}", self.palette.strong if here else self.palette.text)
        if self._gap:
            yield from self._bar(shown.score)
        if self.timeline.evaluated:
            yield Segment(f"{_written(shown.held_out, 3):>10}", self.palette.text)
        for value, name, (_, width) in zip(shown.further, self.timeline.columns, self._further, strict=False):
            yield Segment(f"{_written(value, 4 if name.startswith('kl') else 3):>{width}}", self.palette.muted)
        yield Segment(f"  {_listed(shown.events)}", self.palette.text)

    def _bar(self, value: float | None) -> Iterable[Segment]:
        low, high = self.timeline.limits
        share = 0.0 if value is None or not math.isfinite(value) or high <= low else (value - low) / (high - low)
        yield Segment(" ")
        cells = len(self._gap) - 2
        yield Segment(set_cell_size(stroke(share, cells), cells), self.palette.text)
        yield Segment(" ", Style())


def _written(value: float | None, digits: int) -> str:
    if value is None:
        return ""
    least = 10.0**-digits
    if 0 < value < least / 2:
        return f"<{plain(least, digits)}"
    return signed(value, digits) if value < 0 else plain(value, digits)


def _listed(events: tuple[Mark, ...]) -> str:
    """All events at an update, each kind after its mark."""
    kinds = groupby(events, key=lambda mark: mark.kind)
    listed = (f"{EVENT_MARKS[kind]} {' · '.join(mark.text for mark in marks)}" for kind, marks in kinds)
    return visible("  ".join(listed))
