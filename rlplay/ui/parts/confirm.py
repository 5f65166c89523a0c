"""A question before something that cannot be undone."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.steady_static import SteadyStatic


class ConfirmScreen(Dialogue[bool]):
    """Its result is whether the user said yes."""

    DEFAULT_CSS = """
    ConfirmScreen > Vertical { width: 78; height: auto; padding: 1 2; }
    ConfirmScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", "yes"),
        Binding("escape,q", "dismiss(False)", "close"),
    ]

    def __init__(self, title: str, question: str, yes: str, key: str = "`enter`") -> None:
        """`yes` is the verb of the `key` that agrees."""
        super().__init__()
        self._title, self._question, self._keys = title, question, f"{key} {yes} · `esc` cancel"

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title, panel.border_subtitle = self._title, keyed(self._keys)
            yield SteadyStatic(id="question")

    def on_mount(self) -> None:
        self.ask(self._question)

    def ask(self, question: str) -> None:
        """Put the question, or put it in other words."""
        self.query_one("#question", SteadyStatic).say(Content(visible(question)))
