"""The token map: every completion as text, every token tinted by one statistic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update
from rlplay.ui.legend import legend
from rlplay.ui.messages import CursorMoved
from rlplay.ui.numbers import short
from rlplay.ui.order import advantages
from rlplay.ui.text import NEWLINE, token_text, visible
from rlplay.ui.theme import levels
from rlplay.ui.widgets.lines import Lines
from rlplay.ui.wrap import Cell, wrap

GUTTER = 2
CLIPPED = {1: "▲", -1: "▼"}
VALUE_WIDTH = 5


@dataclass(frozen=True)
class Row:
    """One line: a prompt's (completion −1) or a completion's; `values` marks the line of numbers under it."""

    group: int
    completion: int
    cells: list[Cell]
    values: bool = False


class Tokens(Lines):
    """All completions of one update. The cursor is a token; arrows and the mouse move it."""

    EMPTY = "Press n to sample the first answers, space to let it run."
    HELP = """\
# Tokens

Every answer the policy sampled, prompt dim above it. The colour of a token is one statistic, named in the title; its
scale, written below, never changes, so shades compare between updates. `c` and `C` go through the statistics; until
then the one that fits what has just happened is shown (auto).

**Without colour:** on a scale with two sides the underlined tokens are on the upper one; `m` writes every number.
▲ and ▼ are tokens the clip silenced: their gradient is exactly zero in that optimizer step.

Symbols: ⏎ newline · ∎ end of the answer · ◦ a token that is only part of a character.
"""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "along(-1)", "token left", show=False),
        Binding("right", "along(1)", "token right", show=False),
        Binding("up", "across(-1)", "line up", show=False),
        Binding("down", "across(1)", "line down", show=False),
        Binding("home", "ends(0)", "first token", show=False),
        Binding("end", "ends(-1)", "last token", show=False),
        Binding("pageup", "leaf(-1)", "page up", show=False),
        Binding("pagedown", "leaf(1)", "page down", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._sampled: Sampled | None = None  # as of `show`: the update itself may have gone on by the time of drawing
        self._order: list[int] = []
        self._lens: Lens | None = None
        self._values: Array | None = None
        self._levels: Array | None = None
        self._clips: Array | None = None
        self._means: Array | None = None
        self._signs = False
        self._steps = 0
        self._rows: list[Row] = []
        self._first_row: dict[int, int] = {}
        self._wrapped: dict[int, tuple[int, bytes, list[list[Cell]]]] = {}
        self._wrapped_for: tuple[object, ...] = ()
        self.cursor = (0, 0)

    def show(self, update: Update | None, order: list[int], lens: Lens, automatic: bool, signs: bool) -> None:
        """Show `update`, completions in this `order`, tinted by `lens`; with `signs` every blank and number.

        `automatic` says that nobody chose the lens.
        """
        sampled = None if update is None else update.sampled
        steps = 0 if update is None else len(update.steps)
        stands = sampled is self._sampled and (order, signs, steps) == (self._order, self._signs, self._steps)
        self._order, self._lens, self._signs, self._steps = order, lens, signs, steps
        self._sampled = sampled
        self._values = self._levels = self._means = None
        if update is not None and sampled is not None:
            self._values = lens.values(update)
            self._levels = None if self._values is None else levels(lens, self._values)
            self._means = advantages(update)
            if not stands:
                clips = update.latest_step("clip_state")
                self._clips = None if clips is None else np.nan_to_num(clips).astype(np.int8)
            completion, token = self.cursor
            if completion >= len(sampled.group):
                self.cursor = (0, 0)
            else:
                self.cursor = (completion, min(token, max(self._length(completion) - 1, 0)))
        if stands:
            self.rebuild()
        else:
            self._lay_out()
        self.caption(title(lens, automatic), legend(lens, self.palette, self._values is not None))

    def point(self, completion: int, token: int) -> None:
        """Put the cursor there and show it."""
        if self.cursor == (completion, token) or self._sampled is None or completion >= len(self._sampled.group):
            return
        token = max(min(token, self._length(completion) - 1), 0)
        before, self.cursor = self.cursor, (completion, token)
        self.redraw(*self._rows_of(before[0]), *self._rows_of(completion))
        row = self._row_of_cursor()
        group = self._rows[row].group
        head = row
        while head > 0 and self._rows[head - 1].group == group and self._rows[head - 1].completion < 0:
            head -= 1
        self.reveal(head if row - head < 4 else row, row + int(self._signs))

    # Layout

    def on_resize(self) -> None:
        """A new width breaks the lines elsewhere."""
        self._lay_out()

    def count(self) -> int:
        """The lines of all prompts and completions."""
        return len(self._rows)

    def _length(self, completion: int) -> int:
        assert self._sampled is not None
        offsets = self._sampled.offsets
        return int(offsets[completion + 1] - offsets[completion])

    def _lay_out(self) -> None:
        rows: list[Row] = []
        self._first_row = {}
        if self._sampled is not None:
            width = self.scrollable_content_region.width - GUTTER
            sampled = self._sampled
            key = (sampled.update, tuple(sampled.prompts), width, self._signs)
            if key != self._wrapped_for:
                self._wrapped, self._wrapped_for = {}, key
            group = -1
            for completion in self._order:
                if sampled.group[completion] != group:
                    if group >= 0:
                        rows.append(Row(group, -1, []))
                    group = int(sampled.group[completion])
                    prompt = visible(sampled.prompts[group].replace("\n", f"{NEWLINE} "))
                    words = [f" {word}" if i else word for i, word in enumerate(prompt.split(" "))]
                    rows += [Row(group, -1, cells) for cells in wrap(words, width, [False] * len(words))]
                self._first_row[completion] = len(rows)
                for cells in self._wrap(completion, width) or [[]]:
                    rows.append(Row(group, completion, cells))
                    if self._signs:
                        rows.append(Row(group, completion, cells, values=True))
        self._rows = rows
        self.rebuild()

    def _wrap(self, completion: int, width: int) -> list[list[Cell]]:
        sampled = self._sampled
        assert sampled is not None
        start, end = (int(x) for x in sampled.offsets[completion : completion + 2])
        clips = b"" if self._clips is None else self._clips[start:end].tobytes()
        known = self._wrapped.get(completion)
        if known is not None and known[:2] == (end - start, clips):
            return known[2]
        texts, breaks = [], []
        for token in range(start, end):
            piece = sampled.pieces.get(int(sampled.token_ids[token]), "")
            text = token_text(sampled.texts[token], piece, self._signs)
            breaks.append(sampled.texts[token].endswith("\n"))
            mark = None if self._clips is None else CLIPPED.get(int(self._clips[token]))
            if mark is not None:
                text = mark + text.removeprefix(" ").removeprefix("·")
            texts.append(text.ljust(VALUE_WIDTH) + " " if self._signs else text)
        lines = wrap(texts, width, breaks, known[2] if known is not None and known[1] == clips else None)
        self._wrapped[completion] = (end - start, clips, lines)
        return lines

    # Drawing

    def line(self, row: int) -> Iterable[Segment]:
        """One line of the map."""
        shown = self._rows[row]
        if shown.completion < 0:
            yield Segment("".join(cell.text for cell in shown.cells), self.palette.muted)
            return
        here = self.cursor[0] == shown.completion
        first = self._first_row[shown.completion] == row
        yield Segment("▸" if here and first else "▎", self.palette.key if here else self._edge(shown.completion))
        yield Segment(" ")
        assert self._sampled is not None
        start = int(self._sampled.offsets[shown.completion])
        for cell in shown.cells:
            if shown.values:
                yield self._number(start + cell.token, cell)
            else:
                yield from self._token(start + cell.token, cell, here and self.cursor[1] == cell.token)
        if not shown.cells and not shown.values:
            yield Segment("…", self.palette.faint)

    def _edge(self, completion: int) -> Style:
        if self._means is None:
            return self.palette.faint
        mean = self._means[completion]
        if not np.isfinite(mean) or abs(mean) < 1e-3:
            return self.palette.faint
        return self.palette.up_text if mean > 0 else self.palette.down_text

    def _style(self, token: int) -> Style:
        assert self._sampled is not None
        if not self._sampled.mask[token]:
            return self.palette.muted
        if self._levels is None or self._lens is None:
            return self.palette.text
        return self.palette.shade(int(self._levels[token]), self._lens.scale == "diverging") or self.palette.text

    def _token(self, token: int, cell: Cell, here: bool) -> Iterable[Segment]:
        style = self._style(token)
        if here:
            yield Segment(cell.text, self.palette.cursor)
            return
        text = cell.text.lstrip(" ")
        blank = len(cell.text) - len(text)
        if blank and text:
            # Lines under and through blanks would join words to one long stroke.
            yield Segment(" " * blank, Style(bgcolor=style.bgcolor))
        yield Segment(text or cell.text, style)

    def _number(self, token: int, cell: Cell) -> Segment:
        if self._values is None or self._lens is None or self._levels is None:
            return Segment(" " * cell.width)
        level = int(self._levels[token])
        text = short(float(self._values[token]), self._lens.scale == "diverging" and self._lens.low < 0)
        style = self.palette.muted
        if self._lens.scale == "diverging" and level:
            style = self.palette.up_text if level > 0 else self.palette.down_text
        return Segment(text.ljust(cell.width)[: cell.width], style)

    # Cursor

    def _rows_of(self, completion: int) -> range:
        first = self._first_row.get(completion)
        if first is None:
            return range(0)
        last = first
        while last < len(self._rows) and self._rows[last].completion == completion:
            last += 1
        return range(first, last)

    def _row_of_cursor(self) -> int:
        completion, token = self.cursor
        rows = self._rows_of(completion)
        holding = (row for row in rows if any(cell.token == token for cell in self._rows[row].cells))
        return next(holding, rows.start)

    def _column_of_cursor(self, row: int) -> int:
        x = GUTTER
        for cell in self._rows[row].cells:
            if cell.token == self.cursor[1]:
                break
            x += cell.width
        return x

    def _move(self, completion: int, token: int) -> None:
        self.point(completion, token)
        self.post_message(CursorMoved(*self.cursor))

    def _at(self, row: int, column: int) -> tuple[int, int] | None:
        if not 0 <= row < len(self._rows) or self._rows[row].completion < 0:
            return None
        x, token = GUTTER, 0
        for cell in self._rows[row].cells:
            token = cell.token
            x += cell.width
            if column < x:
                break
        return self._rows[row].completion, token

    def action_along(self, step: int) -> None:
        """To the next token, past the end to the next completion."""
        if not self._order:
            return
        completion, token = self.cursor
        if 0 <= token + step < self._length(completion):
            self._move(completion, token + step)
            return
        place = self._order.index(completion) + step
        if 0 <= place < len(self._order):
            other = self._order[place]
            self._move(other, 0 if step > 0 else self._length(other) - 1)

    def action_across(self, step: int) -> None:
        """To the token above or below."""
        if not self._rows:
            return
        row = self._row_of_cursor()
        column = self._column_of_cursor(row)
        row += step
        while 0 <= row < len(self._rows):
            found = None if self._rows[row].values else self._at(row, column)
            if found is not None:
                self._move(*found)
                return
            row += step

    def action_ends(self, end: int) -> None:
        """To the first or last token of the completion."""
        if self._order:
            self._move(self.cursor[0], 0 if end == 0 else self._length(self.cursor[0]) - 1)

    def action_leaf(self, step: int) -> None:
        """A screenful up or down."""
        if not self._rows:
            return
        page = max(self.scrollable_content_region.height - 2, 1)
        row = self._row_of_cursor()
        column = self._column_of_cursor(row)
        target = max(0, min(row + step * page, len(self._rows) - 1))
        while 0 <= target < len(self._rows):
            found = None if self._rows[target].values else self._at(target, column)
            if found is not None:
                self._move(*found)
                return
            target -= step

    def on_click(self, event: events.Click) -> None:
        """Put the cursor where the mouse is."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        found = self._at(offset.y + self.scroll_offset.y, offset.x)
        if found is not None:
            self._move(*found)


def title(lens: Lens, automatic: bool) -> Content:
    """The panel's title, with how the lens was chosen."""
    return Content.assemble(
        "Tokens", (f" · colour: {lens.title.lower()}{' (auto)' if automatic else ''}", "$text-muted")
    )
