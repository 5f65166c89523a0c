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

from rlplay.trace.records import Evaluated
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import visible
from rlplay.trace.turns import marks_and_text
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shortcuts import LIST_KEYS
from rlplay.ui.format.shown_text import column_text
from rlplay.ui.parts.following import Following
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
        Binding("o", "sort", "sort", id="sort"),
        Binding("enter", "unfold", "unfold the answer, or fold it"),
        Binding("escape,e,q", "dismiss", "close"),
        *LIST_KEYS,
    ]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._worst_first = self._whole = False

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
            found = self._session.source.held_out(0 if shown is None else shown.number)
        except RunFileError as error:
            panel.border_title = "Held-out answers"
            self.query_one(SteadyStatic).say(Content.styled(visible(str(error)), "$warning"))
            return
        panel.border_title = "Held-out answers" if found is None else _title(found)
        sort = "as asked" if self._worst_first else "worst first"
        fold = "fold" if self._whole else "whole answers"
        panel.border_subtitle = keyed(
            f"`o` {sort} · `enter` {fold} · `esc` close" if found is not None else "`esc` close"
        )
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

    def _lines(self, found: Evaluated) -> Iterator[Content]:
        """For each answer its prompt, unless that is the one above, with its columns; then reward and answer."""
        order = np.argsort(found.rewards, kind="stable") if self._worst_first else np.arange(len(found.rewards))
        above = None
        for row in order.tolist():
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
            yield Content.assemble((f"{plain(float(found.rewards[row])):>6}", "bold"), "  ", *written)


def _title(found: Evaluated) -> str:
    count = len(found.completions)
    mean = plain(float(np.nanmean(found.rewards))) if np.isfinite(found.rewards).any() else "–"
    when = f"after update {found.update}" if found.update else "before training"
    return f"Held-out answers {when} · {count} answers · mean reward {mean}"
