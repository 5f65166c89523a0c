"""While the settings are open: the engine's preview of the drafted changes for the update on the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.link.messages import AnyCommand
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.questions import Imagined, WhatIf
from rlplay.trace.records import Array
from rlplay.trace.update import Update
from rlplay.ui.session.as_it_would_be import WhatIfResult, held_back, what_if_result
from rlplay.ui.session.session import Session

NEEDS_ENGINE = "A preview on these answers needs a live run: the engine computes it."
NEEDS_PAUSE = "Pause the run to preview the change on these answers."
NEEDS_NEWEST = "Only the newest update can be previewed: press escape, then v, to go to it."
NEEDS_ANSWERS = "No answers with credit yet to preview the change on: press escape, then u."
NEEDS_TIME = "After an undo a preview samples these answers once more, which takes {}: press escape, then u, instead."
LONGEST = 15.0
"""Seconds of an update that is sampled once more for a preview, at most."""

_THERE = ("credit", "advantages", "importance_ratio", "clip_state", "token_rewards", "returns")
"""Statistics that depend on the settings."""


class Preview:
    """One question at a time: the newest draft waits for the answer to the previous one."""

    def __init__(self, session: Session, send: Callable[[AnyCommand], Awaitable[None]]) -> None:
        self._session = session
        self._send = send
        self._changes: SomeSettings = {}
        self._asked: SomeSettings | None = None
        self._settings = UNKNOWN
        self.result: WhatIfResult | None = None
        self.as_trained = False
        self.words: list[str] = []
        self._waits = False  # whether the draft waits for the run to pause

    async def draft(self, changes: SomeSettings) -> None:
        """Take the user's changes that are not applied yet."""
        self._changes = changes
        if not changes:
            self.clear()
            return
        if reason := self._unavailable():
            self.clear()
            self._changes, self.words, self._waits = changes, [reason], reason is NEEDS_PAUSE
            return
        self._waits = False
        await self._ask()

    async def paused(self) -> None:
        """The run has paused: ask the question that had to wait."""
        if self._waits:
            self.words = []
            await self.draft(self._changes)

    async def receive(self, imagined: Imagined) -> None:
        """Take the engine's answer; ask again if the draft has changed since."""
        self._asked = None
        if not self._changes:
            return
        if imagined.changes != self._changes:
            await self.draft(self._changes)
            return
        shown = None if imagined.refused else self._credited(imagined.update)
        if shown is None:
            self.result = None
            self.words = [f"No preview on these answers: {imagined.refused or 'the engine has moved on'}."]
            return
        if set(imagined.changes) <= set(imagined.held):
            self.result, self.words = None, [held_back(imagined.held)]
            return
        self.result = what_if_result(shown, imagined)
        self._settings = decoded(imagined.settings)
        earlier = self._session.shown is not None and shown.number != self._session.shown.number
        whose = [f"These are the answers of update {shown.number}, the last with credit."] if earlier else []
        self.words = [*whose, *self.result.words]

    def clear(self) -> None:
        """End the preview."""
        self._changes, self._asked, self.result, self.words, self.as_trained = {}, None, None, [], False
        self._waits = False

    @property
    def shown(self) -> Update | None:
        """The update to draw: as it would be, or as trained if `as_trained`; None without a preview."""
        if self.result is None:
            return None
        return self.result.before if self.as_trained else self.result.after

    def instead_of(self, update: Update | None) -> Update | None:
        """The update whose answers are listed: `update`, unless the preview is of an earlier one."""
        earlier = self.shown is not None and update is not None and self.shown.number != update.number
        return self.shown if earlier else update

    @property
    def flipped(self) -> Array | None:
        """The tokens whose gradient would change sign, bool [T]; None without a preview."""
        return None if self.result is None else self.result.flipped

    @property
    def version(self) -> str:
        """The version that is drawn, in words; empty without a preview."""
        return "" if self.result is None else "as trained" if self.as_trained else "as it would be"

    @property
    def settings(self) -> Settings:
        """The settings of the version that is drawn."""
        return self._session.settings_of(self._session.shown) if self.as_trained else self._settings

    def lens(self, chosen: str | None) -> Lens:
        """The statistic of the colours: the chosen one if it depends on the settings, else credit."""
        return LENSES[chosen if chosen in _THERE else "credit"]

    def _unavailable(self) -> str:
        status = self._session.status
        if not self._session.has_engine:
            return NEEDS_ENGINE
        if status is None or status.running:
            return NEEDS_PAUSE
        if self._session.looking is not None:
            return NEEDS_NEWEST
        if self._session.settings.loss_type != "policy_gradient":
            return ""  # the engine says which losses have a preview
        undone = self._session.shown if self._session.undone else None
        if undone is not None and undone.finished is not None and undone.finished.seconds > LONGEST:
            return NEEDS_TIME.format(f"{undone.finished.seconds:.0f} s")
        return "" if self._session.run.finished or self._credited(0) is not None else NEEDS_ANSWERS

    def _credited(self, number: int) -> Update | None:
        """The update on the screen, or update `number`; None without its credit."""
        shown = self._session.shown
        found = shown if shown is not None and number in (0, shown.number) else self._session.run.find(number)
        return None if found is None or found.credited is None else found

    async def _ask(self) -> None:
        if self._asked is None:
            self._asked = self._changes
            await self._send(WhatIf(self._changes))
