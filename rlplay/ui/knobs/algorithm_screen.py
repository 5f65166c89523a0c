"""All algorithms by what they learn from, found by typing, each with its equations: one of them is chosen."""

from __future__ import annotations

from textual import on
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from rlplay.algorithms.catalogue import FAMILIES, PRESETS, Preset
from rlplay.search import search
from rlplay.ui.format.keyed import keyed
from rlplay.ui.formula.algorithm_lines import algorithm_lines
from rlplay.ui.parts.typed_list import TypedList

_NAME = 20
"""Cells of a name in the list, before the title."""


class AlgorithmScreen(TypedList[str | None]):
    """Algorithms on the left, on the right the one under the cursor. Its result is a name, or what was typed."""

    DEFAULT_CSS = """
    AlgorithmScreen > Vertical { width: 124; max-height: 44; }
    AlgorithmScreen OptionList { width: 46; }
    """
    SEEKING = "type to search: clip, teacher, length, arXiv …"

    def __init__(self, name: str) -> None:
        """The cursor starts on the algorithm with this name, if there is one."""
        super().__init__()
        self._first = name

    def on_mount(self) -> None:
        self.query_one(Vertical).border_subtitle = keyed("`↑ ↓` algorithm · `enter` choose · `esc` close")
        self._list("", self._first)

    @property
    def chosen(self) -> Preset | None:
        """The algorithm under the cursor."""
        return None if self.under_cursor is None else PRESETS[self.under_cursor]

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list(event.value, None)

    @on(OptionList.OptionHighlighted)
    def _moved(self) -> None:
        if self.chosen is not None:
            self.tell(Content("\n").join(algorithm_lines(self.chosen)))

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
            self.tell(keyed("No algorithm matches. `enter` takes a file of your own: FILE.yaml."))
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
