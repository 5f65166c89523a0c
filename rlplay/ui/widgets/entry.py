"""A line to type in, which may hold foreign text: shown as symbols where it would be obeyed, and sent as it is."""

from __future__ import annotations

from itertools import accumulate

from rich.cells import cell_len
from rich.text import Text
from textual.widgets import Input

from rlplay.trace.text import one_by_one


class Entry(Input):
    """Textual's `Input` with a symbol in place of each odd character: `value` keeps them, cursor and mouse find them.

    Rich leaves some control characters out of a text and gives the others no cell, so that all that follows would
    stand elsewhere than the cursor. Textual has no public way to show a value other than it is.
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
