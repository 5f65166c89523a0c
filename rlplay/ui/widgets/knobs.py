"""The list of settings and its search line. The screen handles their keys."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, OptionList


class KnobList(OptionList):
    """The settings; left and right change the value under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,minus", "screen.nudge(-1)", "lower", show=False),
        Binding("right,plus", "screen.nudge(1)", "higher", show=False),
    ]

    class Resized(Message):
        """The lines have another width."""

    def on_resize(self) -> None:
        """Keep the setting under the cursor visible when the text below grows or shrinks."""
        self.scroll_to_highlight()
        self.post_message(self.Resized())


class KnobSearch(Input):
    """The search line; keys other than text act on the matches."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.go_on('cursor_up')", show=False),
        Binding("down", "screen.go_on('cursor_down')", show=False),
        Binding("pageup", "screen.go_on('page_up')", show=False),
        Binding("pagedown", "screen.go_on('page_down')", show=False),
        Binding("left", "screen.go_on('screen.nudge(-1)')", show=False),
        Binding("right", "screen.go_on('screen.nudge(1)')", show=False),
        Binding("enter", "screen.go_on('select')", show=False),
    ]
