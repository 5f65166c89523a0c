"""Chooses the statistic that colours the tokens, with what each means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from rlplay.trace.lenses import CYCLE, LENSES, Lens
from rlplay.trace.update import Update
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.legend import coming, legend
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.session.session import Session
from rlplay.ui.theme.inks import Palette
from rlplay.ui.tokens.facts import facts_of

AUTO = "auto"
_AUTO_TITLE = "automatic: what fits the phase"
_AUTO_MEANING = (
    "Probability while answers are sampled and scored, then the advantage, then the credit of the update; after it, "
    "the change in probability."
)
_ROOM = 70
"""Cells for a scale."""


class ColoursScreen(Dialogue[None]):
    """Performs the verb `lens`."""

    DEFAULT_CSS = """
    ColoursScreen > Vertical { width: 78; height: auto; max-height: 100%; }
    ColoursScreen OptionList {
        height: auto; max-height: 60%; padding: 0; background: $background; scrollbar-size-vertical: 1;
        text-wrap: nowrap; text-overflow: ellipsis;
        &, &:focus { border: none; }
    }
    ColoursScreen Static { height: 6; border-top: solid $border; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,C,q", "dismiss", "close"), *LIST_KEYS]

    def __init__(self, session: Session, choice: str | None, palette: Palette) -> None:
        """The statistics of the update on the screen; `choice` is the present one, None for automatic."""
        super().__init__()
        self._update: Update | None = session.shown
        self._settings, self._word = session.settings_of(session.shown), session.step_word
        self._choice, self._palette = choice or AUTO, palette
        every = [AUTO, *CYCLE, *(name for name in LENSES if name not in CYCLE)]
        listed = {name for name in every if name in (AUTO, choice) or not LENSES[name].special or self._there(name)}
        self._names = [name for name in every if name in listed]

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = worded("Colour the tokens by", self._word)
            panel.border_subtitle = keyed("`enter` choose · `esc` close")
            yield OptionList(*(Option(self._line(name), id=name) for name in self._names))
            yield Static()

    def on_mount(self) -> None:
        listed = self.query_one(OptionList)
        listed.highlighted = listed.get_option_index(self._choice)
        listed.focus()

    def _lens(self, name: str) -> Lens:
        return LENSES[name].of(self._settings)

    def _there(self, name: str) -> bool:
        return self._update is not None and facts_of(self._update).lens(name) is not None

    def _line(self, name: str) -> Content:
        mark = "▸ " if name == self._choice else "  "
        if name == AUTO:
            return Content.assemble((mark, "bold $foreground"), _AUTO_TITLE)
        lens = self._lens(name)
        missing = "" if self._update is None or self._there(name) else f"  {coming(lens, self._update.phase)}"
        ink = "$text-muted" if missing else ""
        return Content.assemble(
            (mark, "bold $foreground"),
            (worded(lens.title, self._word), ink),
            (f"  {lens.symbol}{missing}", "$text-muted"),
        )

    def _meaning(self, name: str) -> Iterator[Content]:
        """What the statistic means: its scale, its formula, how to read it."""
        if name == AUTO:
            yield Content(_AUTO_MEANING)
            return
        lens = self._lens(name)
        yield legend(lens, self._palette, True, _ROOM)
        yield Content.styled(worded(f"{lens.symbol} = {lens.formula}", self._word), "$text-muted")
        yield Content(worded(lens.reading, self._word))

    @on(OptionList.OptionHighlighted)
    def _moved(self, event: OptionList.OptionHighlighted) -> None:
        self.query_one(Static).update(Content("\n").join(self._meaning(event.option_id or AUTO)))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss()
        self.post_message(Perform("lens", event.option_id))
