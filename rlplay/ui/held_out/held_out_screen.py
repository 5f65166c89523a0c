"""The answers to the held-out prompts, which are never trained on: the newest up to the update on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import ClassVar

import numpy as np
from rich.cells import cell_len, chop_cells
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Region
from textual.widgets import Static

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

    DEFAULT_CSS = """
    HeldOutScreen > VerticalScroll { width: 130; height: auto; max-height: 95%; }
    HeldOutScreen #cursor { position: absolute; width: 1; height: 1; color: $accent; text-style: bold; }
    """
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
        self._lines: list[Content] = []
        self._answers: list[int] = []  # the line of each answer
        self._rows: tuple[int, list[int]] = 0, []  # in so many cells: the row on which each line begins, and the end

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield SteadyStatic()
            yield Static("▸", id="cursor")

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
        cursor = self.query_one("#cursor")
        cursor.display = False
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
        self._lines, self._answers, self._rows = [], [], (0, [])
        for answers, line in () if found is None else self._said(found):
            self._answers += [len(self._lines)] * answers
            self._lines.append(line)
        self._at = min(self._at, max(len(self._answers) - 1, 0))
        cursor.display = bool(self._answers)
        self.query_one(SteadyStatic).say(Content(_NOTHING) if found is None else Content("\n").join(self._lines))
        self.call_after_refresh(self._point)

    def on_resize(self) -> None:
        """The lines are wrapped at another width."""
        self.call_after_refresh(self._point)

    def _point(self, reveal: bool = False) -> None:
        """Put the cursor beside its answer, and scroll there to `reveal` it; the text is not drawn again."""
        width = self.query_one(SteadyStatic).size.width
        if not self._answers or not width:
            return
        if self._rows[0] != width:
            heights = (max(len(line.wrap(width)), 1) for line in self._lines)
            self._rows = width, list(accumulate(heights, initial=0))
        at, rows = self._answers[self._at], self._rows[1]
        self.query_one("#cursor").styles.offset = 0, rows[at]
        if reveal:
            region = Region(0, rows[at], width, rows[at + 1] - rows[at])
            self.query_one(VerticalScroll).scroll_to_region(region, animate=False, force=True)

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
        self._at = min(max(self._at + step, 0), max(len(self._answers) - 1, 0))
        self._point(reveal=True)

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

    def _said(self, found: Evaluated) -> Iterator[tuple[bool, Content]]:
        """Lines, and whether they are answers. For each its prompt, unless that is the one above, with its columns;
        then reward and answer."""
        above = None
        for row in self._order(found):
            columns = found.columns[row] if found.columns else {}
            if (found.prompts[row], columns) != above:
                beside = "".join(f" · {visible(name)} {visible(column_text(value))}" for name, value in columns.items())
                if above is not None:
                    yield False, Content()
                yield False, Content.styled(f"{visible(found.prompts[row])}{beside}", "$text-muted")
                above = found.prompts[row], columns
            answer = visible(found.completions[row])
            if not self._whole and cell_len(answer) > _FOLDED:
                answer = f"{chop_cells(answer, _FOLDED - 1)[0]}…"
            written = [(part, "$text-muted" if mark else "") for part, mark in marks_and_text(answer)]
            yield True, Content.assemble((f"{plain(float(found.rewards[row])):>6}", "bold"), "  ", *written)


def _title(found: Evaluated) -> str:
    count = len(found.completions)
    mean = plain(float(np.nanmean(found.rewards))) if np.isfinite(found.rewards).any() else "–"
    when = f"after update {found.update}" if found.update else "before training"
    return f"Held-out answers {when} · {count} answers · mean reward {mean}"
