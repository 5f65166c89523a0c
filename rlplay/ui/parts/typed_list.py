"""A dialogue with a list that is found by typing, and beside it the text of the line under the cursor."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ScreenResultType
from textual.widgets import Input, OptionList, Static

from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.text_field import TextField


class TypedList(Dialogue[ScreenResultType]):
    """What a subclass lists in its `OptionList` has ids; a line that is disabled, such as a heading, is passed over.

    `SEEKING` is what the line says that is typed into.
    """

    DEFAULT_CSS = """
    TypedList > Vertical { height: 90%; }
    TypedList.-narrow > Vertical { height: 100%; }
    TypedList Input {
        &, &:focus { height: 1; border: none; padding: 0 1; margin: 0 0 1 0; background: $surface; }
    }
    TypedList OptionList {
        height: 1fr; background: $background; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis; border: none;
        & > .option-list--option-highlighted { background: $accent 30%; color: $foreground; text-style: none; }
        &:ansi > .option-list--option-highlighted { background: ansi_bright_black; color: ansi_white; }
    }
    TypedList.-narrow OptionList { width: 22; }
    TypedList VerticalScroll { width: 1fr; padding: 0 1 0 2; scrollbar-size-vertical: 1; }
    TypedList Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "line above"),
        Binding("down", "step(1)", "line below"),
        Binding("pageup", "scroll(-1)", "scroll the text up"),
        Binding("pagedown", "scroll(1)", "scroll the text down"),
        Binding("escape", "dismiss", "close"),
    ]
    SEEKING: ClassVar[str]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield TextField(placeholder=self.SEEKING, select_on_focus=False)
            with Horizontal():
                lines = OptionList()
                lines.can_focus = False
                yield lines
                with VerticalScroll(can_focus=False):
                    yield Static()

    def on_mount(self) -> None:
        """Let what is typed be sought."""
        self.query_one(Input).focus()

    @property
    def under_cursor(self) -> str | None:
        """The id of the line under the cursor."""
        option = self.query_one(OptionList).highlighted_option
        return None if option is None else option.id

    def tell(self, text: Content) -> None:
        """Show the text beside the list from its beginning."""
        self.query_one(Static).update(text)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_step(self, step: int) -> None:
        """Go to another line."""
        lines = self.query_one(OptionList)
        at = (-1 if lines.highlighted is None else lines.highlighted) + step
        while 0 <= at < lines.option_count and lines.get_option_at_index(at).disabled:
            at += step
        if 0 <= at < lines.option_count:
            lines.highlighted = at

    def action_scroll(self, step: int) -> None:
        """Scroll a long text."""
        text = self.query_one(VerticalScroll)
        text.scroll_relative(y=step * max(text.size.height - 1, 1), animate=False)
