"""Lets the health of a run take its updates, large ones in a thread: the digest of one takes longer than a key may."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rlplay.health.run import Health
from rlplay.trace.update import Update

AT_ONCE = 50_000
"""Tokens of an update whose digest takes a few milliseconds."""


class Digesting:
    """Takes one large update at a time, and calls `done` after each."""

    def __init__(self, done: Callable[[], None]) -> None:
        self._done = done
        self._busy = False

    def take(self, health: Health, update: Update) -> None:
        """Let `health` take `update`: at once, or soon if it is large."""
        if update.tokens <= AT_ONCE:
            health.add(update)
        elif not self._busy and not health.holds(update) and update.sampled is not None and update.sampled.done:
            self._busy = True
            work = asyncio.get_running_loop().run_in_executor(None, health.add, update)
            work.add_done_callback(self._finished)

    def _finished(self, work: asyncio.Future[None]) -> None:
        self._busy = False
        work.result()
        self._done()
