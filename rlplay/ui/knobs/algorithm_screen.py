"""All algorithms by what they learn from, found by typing, each with its equations: one of them is chosen."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from rlplay.algorithms.catalogue import FAMILIES, PRESETS, Preset
from rlplay.search import search
from rlplay.ui.format.keyed import keyed
from rlplay.ui.formula.algorithm_lines import algorithm_lines
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.text_field import TextField

_NAME = 20
"""Cells of a name in the list, before the title."""


class AlgorithmScreen(Dialogue[str | None]):
    """Algorithms on the left, on the right the one under the cursor. Its result is a name, or what was typed."""

    DEFAULT_CSS = """
    AlgorithmScreen > Vertical { width: 124; height: 90%; max-height: 44; }
    AlgorithmScreen.-narrow > Vertical { height: 100%; }
    AlgorithmScreen Input {
        &, &:focus { height: 1; border: none; padding: 0 1; margin: 0 0 1 0; background: $surface; }
    }
    AlgorithmScreen OptionList {
        width: 46; height: 1fr; background: $background; padding: 0; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis; border: none;
        & > .option-list--option-highlighted { background: $accent 30%; color: $foreground; text-style: none; }
        &:ansi > .option-list--option-highlighted { background: ansi_bright_black; color: ansi_white; }
    }
    AlgorithmScreen.-narrow OptionList { width: 22; }
    AlgorithmScreen VerticalScroll { width: 1fr; padding: 0 1 0 2; scrollbar-size-vertical: 1; }
    AlgorithmScreen Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "algorithm above"),
        Binding("down", "step(1)", "algorithm below"),
        Binding("pageup", "scroll(-1)", "scroll the text up"),
        Binding("pagedown", "scroll(1)", "scroll the text down"),
        Binding("escape", "dismiss", "close"),
    ]

    def __init__(self, name: str) -> None:
        """The cursor starts on the algorithm with this name, if there is one."""
        super().__init__()
        self._first = name

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_subtitle = keyed("`↑ ↓` algorithm · `enter` choose · `esc` close")
            yield TextField(placeholder="type to search: clip, teacher, length, arXiv …", select_on_focus=False)
            with Horizontal():
                names = OptionList()
                names.can_focus = False
                yield names
                with VerticalScroll(can_focus=False):
                    yield Static()

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._list("", self._first)

    @property
    def chosen(self) -> Preset | None:
        """The algorithm under the cursor."""
        option = self.query_one(OptionList).highlighted_option
        return PRESETS[option.id] if option is not None and option.id is not None else None

    def action_step(self, step: int) -> None:
        """Go to another algorithm."""
        names = self.query_one(OptionList)
        if step > 0:
            names.action_cursor_down()
        else:
            names.action_cursor_up()

    def action_scroll(self, step: int) -> None:
        """Scroll long equations."""
        text = self.query_one(VerticalScroll)
        text.scroll_relative(y=step * max(text.size.height - 1, 1), animate=False)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list(event.value, None)

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        if self.chosen is not None:
            self.query_one(Static).update(Content("\n").join(algorithm_lines(self.chosen)))
            self.query_one(VerticalScroll).scroll_home(animate=False)

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        self.dismiss(self.chosen.name if self.chosen is not None else event.value.strip() or None)

    def _list(self, typed: str, at: str | None) -> None:
        """All by family; of a search the best match first."""
        found = search(typed, PRESETS.values(), lambda each: (each.name, each.title), _text)
        names = self.query_one(OptionList)
        how_many = f"{len(found)} of {len(PRESETS)}" if typed else f"{len(PRESETS)}"
        self.query_one(Vertical).border_title = Content.assemble("Algorithms", (f" · {how_many}", "$text-muted"))
        names.set_options(self._by_family(found) if not typed.strip() else [self._option(each) for each in found])
        if not found:
            self.query_one(Static).update(keyed("No algorithm matches. `enter` takes a file of your own: FILE.yaml."))
        else:
            names.highlighted = names.get_option_index(at if at in PRESETS else found[0].name)

    def _by_family(self, found: list[Preset]) -> list[Option]:
        options = list[Option]()
        for family in FAMILIES:
            options.append(Option(Content.styled(family.upper(), "$text-muted bold"), disabled=True))
            options += [self._option(each) for each in found if each.family == family]
        return options

    def _option(self, each: Preset) -> Option:
        return Option(Content.assemble(f"{each.name:<{_NAME}} ", (each.title, "$text-muted")), id=each.name)


def _text(preset: Preset) -> str:
    return f"{preset.explained} {preset.paper} {preset.family}"
