"""The settings of a branch, starting from those at its first update."""

from __future__ import annotations

from typing import ClassVar

from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.records import Started
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.session.session import Session


class BranchScreen(KnobsScreen):
    """Its result is the changes, possibly none, or None if the user cancels."""

    VERBS_ON_CHANGES: ClassVar[set[str]] = {"reset", "compare"}

    def __init__(self, session: Session, started: Started, number: int, question: str = "") -> None:
        """A branch of the session's run from the end of update `number`, or what else the `question` asks for."""
        super().__init__(session.settings_after(number), scenario_of(started), step_word=session.step_word)
        self._number, self._question = number, question
        looked_at = session.older_update
        self._unfinished = looked_at if looked_at is not None and number == session.run.finished < looked_at else None

    @property
    def title_line(self) -> str:
        """The upper line of the frame: where the branch starts."""
        if self._question:
            return self._question
        begin = f"update {self._number}" if self._number else "the start"
        if self._unfinished is not None:
            return f"Branch from {begin}, because {self._unfinished} is not finished yet"
        return f"Branch from {begin}: what should differ?"

    @property
    def key_line(self) -> str:
        """The lower line of the frame: the keys that work now."""
        changed = "`z` undo" if self.draft.differing() else "`/` find"
        return f"`a` {'try' if self._question else 'start'} · `← →` change · `enter` type · {changed} · `esc` cancel"
