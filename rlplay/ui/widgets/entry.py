"""An input that may hold untrusted text. It shows control characters as symbols and sends the text unchanged."""

from __future__ import annotations

from itertools import accumulate

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Input

from rlplay.trace.text import one_by_one


class Entry(Input):
    """Textual's `Input` with a symbol for each control character. `value` keeps the character; the cursor can reach it.

    Rich drops some control characters and gives others no cell, so all text after them would be off the cursor.
    Textual has no public way to display a value in another form.
    """

    @property
    def _value(self) -> Text:
        return Text(one_by_one(self.value), no_wrap=True, overflow="ignore", end="")

    def _position_to_cell(self, position: int) -> int:
        return cell_len(one_by_one(self.value)[:position])

    def _cell_offset_to_index(self, offset: int) -> int:
        ends = accumulate(map(cell_len, one_by_one(self.value)))
        cell = offset + self.scroll_offset.x
        return next((index for index, end in enumerate(ends) if end > cell), len(self.value))
