"""Text that a timer sets again and again, drawn only when it changes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class SteadyStatic(Static):
    """A `Static` for text set by a timer: unchanged text does not trigger a new layout of the screen."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = Content()

    def say(self, words: Content) -> None:
        """Show `words`."""
        if not words.is_same(self._words):
            self._words = words
            self.update(words)
