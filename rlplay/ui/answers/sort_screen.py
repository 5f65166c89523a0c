"""Chooses by what the answers are sorted."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from rlplay.trace.text import visible
from rlplay.ui.answers.answer_order import ARROWS, AS_SAMPLED, Sort
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel_messages import Perform


class SortScreen(Dialogue[None]):
    """Performs the verb. Choosing the present column again turns its order round."""

    DEFAULT_CSS = """
    SortScreen { align: left middle; background: transparent; }
    SortScreen OptionList {
        width: 40; max-width: 100%; height: auto; max-height: 80%; padding: 0 1; background: $background;
        scrollbar-size-vertical: 1; border: round $accent; border-title-color: $foreground; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,o,q", "dismiss", "close"), *LIST_KEYS]

    def __init__(self, names: list[str], sort: Sort) -> None:
        """The `names` to sort by, and how it is sorted now."""
        super().__init__()
        self._names, self._sort = ["", *names], sort

    def compose(self) -> ComposeResult:
        panel = OptionList(*(Option(self._line(name)) for name in self._names))
        panel.border_title = "Sort the answers"
        panel.border_subtitle = keyed("`enter` sort or reverse · `esc` close")
        yield panel

    def on_mount(self) -> None:
        panel = self.query_one(OptionList)
        here = self._names.index(self._sort.name) if self._sort.name in self._names else 0
        panel.highlighted = (here + 1) % len(self._names)  # so that the same two keys go through them
        panel.focus()

    def _line(self, name: str) -> Content:
        mark = "▸ " if name == self._sort.name else "  "
        arrow = f" {ARROWS[self._sort.falling]}" if name and name == self._sort.name else ""
        return Content.assemble((mark, "bold $foreground"), visible(name) or AS_SAMPLED, (arrow, "bold $foreground"))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        name = self._names[event.option_index]
        again = bool(name) and name == self._sort.name
        self.dismiss()
        self.post_message(Perform("sort", f"{'-' * (again and self._sort.falling)}{name or AS_SAMPLED}"))
