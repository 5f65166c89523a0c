"""The list of settings, its search line and the field for a value. The screen handles their keys."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input, OptionList

from rlplay.algorithms.setting_values import shown
from rlplay.ui.knobs.draft import Draft
from rlplay.ui.parts.text_field import TextField

_NAME_AND_NUMBER = re.compile(r"(.*?)\s*([\d.][-\d.e]*)")


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


class ValueEntry(TextField):
    """The field for a value. A number is drafted with each letter, so that the preview follows what is typed."""

    class Tried(Message):
        """The draft has the number typed so far."""

    def begin(self, draft: Draft, name: str, typed: str = "") -> None:
        """Type a value for `name`, beginning with digits `typed`, for a number only, or with the present value."""
        if typed and not draft.counts(name):
            return
        self._draft, self._setting, self._before = draft, name, draft.settings
        self.select_on_focus = not typed
        self.value = typed or shown(draft.value(name))
        self.cursor_position = len(self.value)
        self.add_class("-typing")
        self.focus()

    @on(Input.Changed)
    def _try(self, event: Input.Changed) -> None:
        if self.has_class("-typing") and self._draft.counts(self._setting) and _is_number(event.value):
            with suppress(ValueError):  # told once the value is accepted
                self._draft.put(self._setting, event.value.strip())
                self.post_message(self.Tried())

    def give_up(self) -> None:
        """The draft is as before the typing."""
        self._draft.take_back(self._before)


def name_and_number(typed: str) -> tuple[str, str]:
    """A search that ends with a number, as its words and the number: "beta .3"; ("", "") for other searches."""
    found = _NAME_AND_NUMBER.fullmatch(typed)
    return (found[1], found[2]) if found else ("", "")


def _is_number(typed: str) -> bool:
    try:
        float(typed)
    except ValueError:
        return False
    return True
