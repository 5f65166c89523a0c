"""A dialogue that shows what changes while it is open. One clock looks after all of them: the refresher's."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import ClassVar

from textual.events import ScreenResume
from textual.screen import ScreenResultType

from rlplay.ui.parts.over_another import Dialogue


class Following(Dialogue[ScreenResultType]):
    """`follow` is called whenever `version` has changed, also while another dialogue lies above."""

    SECONDS: ClassVar[float] = 0.25
    """Between two looks at the version, at least."""
    _next: float | None = None  # when it looks again
    _seen: object = None
    _covered = False  # by another dialogue, since it last looked again

    @abstractmethod
    def version(self) -> object:
        """Equal as long as the dialogue has nothing else to show; quick to make and to compare."""

    @abstractmethod
    def follow(self) -> None:
        """Show what there is now."""

    def begin(self) -> None:
        """Show what there is at first, and follow from then on; for the end of `on_mount`."""
        self._next = 0.0
        self.look()

    def on_screen_suspend(self) -> None:
        """Another dialogue lies above."""
        self._covered = True

    def on_screen_resume(self, _event: ScreenResume) -> None:
        """Look again: what lay above may have stood in the way. The first resume follows the opening."""
        if self._covered:
            self._seen, self._covered = None, False

    def look(self, at_once: bool = False) -> None:
        """Follow if there is another version; called several times a second. `at_once` waits for no clock."""
        now = time.monotonic()
        if self._next is None or (now < self._next and not at_once):
            return
        self._next = now + self.SECONDS
        version = self.version()
        if version != self._seen:
            self._seen = version
            self.follow()
