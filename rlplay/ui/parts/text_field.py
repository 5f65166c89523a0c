"""An input that may hold untrusted text. It shows control characters as symbols and sends the text unchanged."""

from __future__ import annotations

from rlplay.trace.text import one_by_one
from rlplay.ui.compat import ShownInput


class TextField(ShownInput):
    """Textual's `Input` with a symbol for each control character. `value` keeps the character; the cursor can reach it.

    Rich drops some control characters and gives others no cell, so all text after them would be off the cursor.
    """

    def shown(self) -> str:
        """The value with symbols."""
        return one_by_one(self.value)
