"""What should be different in a branch: the knobs as they held at its beginning."""

from __future__ import annotations

from textual.containers import Vertical

from rlplay.scenario.recipe import scenario_of
from rlplay.trace.records import Started
from rlplay.ui.screens.knobs import KnobsScreen
from rlplay.ui.session import Session
from rlplay.ui.widgets.narrator import keyed

_KEYS = "`← →` change · `enter` type · `r` reset · `a` start the branch · `esc` cancel"


class BranchScreen(KnobsScreen):
    """Dismisses with the changes, none at all being fine, or None to leave it."""

    def __init__(self, session: Session, started: Started, number: int) -> None:
        """A branch of the session's run from the end of update `number`."""
        super().__init__(session.settings_after(number), scenario_of(started))
        self._number = number

    def on_mount(self) -> None:
        """Say what the changes are for."""
        panel = self.query_one(Vertical)
        begin = f"update {self._number}" if self._number else "the start"
        panel.border_title = f"Branch from {begin}: what should be different?"
        panel.border_subtitle = keyed(_KEYS)
