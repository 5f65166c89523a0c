"""The answers to the held-out prompts, which are never trained on: the newest up to the update on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from rich.cells import cell_len, chop_cells
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region

from rlplay.trace.questions import Prefix
from rlplay.trace.records import Evaluated
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.trace.turns import marks_and_text
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.format.shown_text import column_text
from rlplay.ui.parts.following import Following
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.session import Session

_FOLDED = 300
"""Cells of an answer that is not unfolded."""
_NOTHING = "No held-out answers are on record up to this update."


class HeldOutScreen(Following[None]):
    """Follows the run while it is open."""

    DEFAULT_CSS = "HeldOutScreen > VerticalScroll { width: 130; height: auto; max-height: 95%; }"
    SECONDS = 0.5
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "answer above", show=False, priority=True),
        Binding("down", "move(1)", "answer below", show=False, priority=True),
        Binding("o", "sort", "sort", id="sort"),
        Binding("Y", "teachers", "why"),
        Binding("enter", "unfold", "unfold the answer, or fold it"),
        Binding("escape,e,q", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._worst_first = self._whole = False
        self._found: Evaluated | None = None
        self._at = 0  # the answer under the cursor, by its place on the list

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield SteadyStatic()

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.begin()

    def version(self) -> object:
        """The update on the screen, and the evaluations."""
        shown, run = self._session.shown, self._session.run
        # A recording that grows brings another history; an engine, evaluations.
        return None if shown is None else shown.number, run.history, run.evaluations.version, run.rewinds

    def follow(self) -> None:
        """Show the newest answers up to the update on the screen."""
        shown, panel = self._session.shown, self.query_one(VerticalScroll)
        try:
            found = self._found = self._session.source.held_out(0 if shown is None else shown.number)
        except RunFileError as error:
            panel.border_title = "Held-out answers"
            self.query_one(SteadyStatic).say(Content.styled(visible(str(error)), "$warning"))
            return
        panel.border_title = "Held-out answers" if found is None else _title(found)
        sort = "as asked" if self._worst_first else "worst first"
        fold = "fold" if self._whole else "whole answers"
        keys = f"`↑ ↓` answer · `Y` why · `o` {sort} · `enter` {fold} · `esc` close"
        panel.border_subtitle = keyed("`esc` close" if found is None else keys)
        words = Content(_NOTHING) if found is None else Content("\n").join(self._lines(found))
        self.query_one(SteadyStatic).say(words)

    def action_sort(self) -> None:
        """The answers in the order in which they were asked, or the lowest reward first."""
        self._worst_first = not self._worst_first
        self.follow()

    def action_unfold(self) -> None:
        """Every answer in full, or only its beginning."""
        self._whole = not self._whole
        self.follow()

    def action_move(self, step: int) -> None:
        """Go to another answer."""
        if self._found is None:
            return
        self._at = min(max(self._at + step, 0), max(len(self._found.rewards) - 1, 0))
        self.follow()
        panel, above = self.query_one(VerticalScroll), 0
        width = max(panel.scrollable_content_region.width, 1)
        for line in self._lines(self._found):
            height = max(len(line.wrap(width)), 1)
            if line.plain.startswith("▸"):
                panel.scroll_to_region(Region(0, above, width, height), animate=False, force=True)
                return
            above += height

    def action_teachers(self) -> None:
        """Ask which answers taught the model the one under the cursor."""
        if (found := self._found) is not None and found.completions:
            row = self._order(found)[self._at]
            columns = found.columns[row] if found.columns else None
            self.post_message(
                Perform("teachers", Prefix(found.prompts[row], columns=columns, text=found.completions[row]))
            )

    def _order(self, found: Evaluated) -> list[int]:
        by_reward: list[int] = np.argsort(found.rewards, kind="stable").tolist()
        return by_reward if self._worst_first else list(range(len(found.rewards)))

    def _lines(self, found: Evaluated) -> Iterator[Content]:
        """For each answer its prompt, unless that is the one above, with its columns; then reward and answer."""
        above, order = None, self._order(found)
        self._at = min(self._at, max(len(order) - 1, 0))
        for at, row in enumerate(order):
            columns = found.columns[row] if found.columns else {}
            if (found.prompts[row], columns) != above:
                beside = "".join(f" · {visible(name)} {visible(column_text(value))}" for name, value in columns.items())
                if above is not None:
                    yield Content()
                yield Content.styled(f"{visible(found.prompts[row])}{beside}", "$text-muted")
                above = found.prompts[row], columns
            answer = visible(found.completions[row])
            if not self._whole and cell_len(answer) > _FOLDED:
                answer = f"{chop_cells(answer, _FOLDED - 1)[0]}…"
            written = [(part, "$text-muted" if mark else "") for part, mark in marks_and_text(answer)]
            mark = ("▸" if at == self._at else " ", "bold $accent")
            yield Content.assemble(mark, (f"{plain(float(found.rewards[row])):>5}", "bold"), "  ", *written)


def _title(found: Evaluated) -> str:
    count = len(found.completions)
    mean = plain(float(np.nanmean(found.rewards))) if np.isfinite(found.rewards).any() else "–"
    when = f"after update {found.update}" if found.update else "before training"
    return f"Held-out answers {when} · {count} answers · mean reward {mean}"
