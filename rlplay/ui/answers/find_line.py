"""Search: a line at the bottom to type in, while the answers above already show the matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from rlplay.trace.find import CLIPPED, names
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.text_field import TextField
from rlplay.ui.session.session import Session
from rlplay.ui.tokens.finder import Finder


class FindScreen(Dialogue[None]):
    """`seek` searches for the typed text and returns what is wrong with it."""

    DEFAULT_CSS = """
    FindScreen { background: transparent; }
    FindScreen > Vertical { dock: bottom; height: auto; }
    FindScreen Input { &, &:focus { height: 1; border: none; padding: 0; background: $background; } }
    FindScreen Static { height: auto; max-height: 3; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "all answers again")]

    def __init__(self, seek: Callable[[str], str], finder: Finder, session: Session) -> None:
        super().__init__()
        self._seek, self._finder, self._session = seek, finder, session
        self._before = "" if finder.query is None else finder.query.typed

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Find"
            panel.border_subtitle = keyed("`enter` keep · then `f` `F` next, back · `esc` close, all answers")
            yield TextField(self._before, placeholder="reward<0.5 length>20, clipped, or text")
            yield Static()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._tell("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        # The beginning of a comparison is neither searched for as text nor reported as wrong.
        growing = event.value and any(name.startswith(event.value.lower()) for name in self._unfinished())
        if not growing and self._seek(event.value) and not self._goes_on(event.value):
            self._seek(self._before)
        self._tell("")

    @on(Input.Submitted)
    def _kept(self, event: Input.Submitted) -> None:
        problem = self._seek(event.value)
        if problem:
            self._tell(problem)
        else:
            self.dismiss()

    def action_cancel(self) -> None:
        """Close the search and show all answers."""
        self._seek("")
        self.dismiss()

    def _unfinished(self) -> list[str]:
        """The words with which a comparison can begin."""
        return [CLIPPED[:-1], *names(self._session.shown)]

    def _goes_on(self, typed: str) -> bool:
        """Whether `typed` begins another comparison after complete ones."""
        query = self._finder.query
        return query is not None and bool(query.conditions) and typed.startswith(query.typed)

    def _tell(self, problem: str) -> None:
        known = f"{CLIPPED} (▲ and ▼) · numbers: {' '.join(map(visible, names(self._session.shown)))}"
        words = Content.styled(f"▲ {problem}", "$warning") if problem else Content(known)
        self.query_one(Static).update(words)
