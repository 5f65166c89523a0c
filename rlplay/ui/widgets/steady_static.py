"""Words that are said again and again, and drawn when they are others."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class SteadyStatic(Static):
    """A `Static` for words that are told in a timer: those that stay do not lay the whole screen out again."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._words = Content()

    def say(self, words: Content) -> None:
        """Show these."""
        if not words.is_same(self._words):
            self._words = words
            self.update(words)
