"""The list of settings and the line to find one in; what their keys do is the screen's."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList


class KnobList(OptionList):
    """The settings; left and right belong to the value under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,minus", "screen.nudge(-1)", "lower", show=False),
        Binding("right,plus", "screen.nudge(1)", "higher", show=False),
    ]

    def on_resize(self) -> None:
        """What is said below takes more room or less; the setting stays in sight."""
        self.scroll_to_highlight()


class KnobSearch(Input):
    """What to find; every key that is no text goes on with what was found."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.go_on('cursor_up')", show=False),
        Binding("down", "screen.go_on('cursor_down')", show=False),
        Binding("pageup", "screen.go_on('page_up')", show=False),
        Binding("pagedown", "screen.go_on('page_down')", show=False),
        Binding("left", "screen.go_on('screen.nudge(-1)')", show=False),
        Binding("right", "screen.go_on('screen.nudge(1)')", show=False),
        Binding("enter", "screen.go_on('select')", show=False),
    ]
