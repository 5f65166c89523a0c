"""Lets the health of a run take its updates: those that arrive, and from the run file those that came before.

The digest of a large update takes longer than a key may, so it is made in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from rlplay.health.run import Health, wanted
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.update import Update
from rlplay.ui.session.happenings import Source

AT_ONCE = 50_000
"""Tokens of an update whose digest takes a few milliseconds."""


class Digesting:
    """Takes one large update at a time, and calls `done` when more is known."""

    def __init__(self, health: Health, source: Source, done: Callable[[], None]) -> None:
        self._health, self._source, self._done = health, source, done
        self._busy = False
        self._last = self._complete = 0
        self._read: set[int] = set()  # from the run file
        self._reading: asyncio.Task[None] | None = None

    def take(self, update: Update) -> None:
        """Let the health take `update`: at once, or soon if it is large."""
        if update.tokens <= AT_ONCE:
            self._health.add(update)
        elif not self._busy and not self._health.holds(update) and update.sampled is not None and update.sampled.done:
            self._busy = True
            work = asyncio.get_running_loop().run_in_executor(None, self._health.add, update)
            work.add_done_callback(self._finished)

    def left(self, last: int) -> int:
        """How many updates before `last` have to be read before the health there is known; their reading begins."""
        if last == self._complete:
            return 0
        self._last, missing = last, self._missing(last)
        if not missing:
            self._complete = last
        elif self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_on())
        return len(missing)

    def go_back(self, number: int) -> None:
        """Forget the updates after `number`: the run went back to its end."""
        self._health.go_back(number)
        self._complete, self._read = 0, {each for each in self._read if each <= number}

    def stop(self) -> None:
        """Read no further."""
        if self._reading is not None:
            self._reading.cancel()

    def _finished(self, work: asyncio.Future[None]) -> None:
        self._busy = False
        work.result()
        self._done()

    def _missing(self, last: int) -> list[int]:
        try:
            numbers = wanted(self._source.recorded(), last)
        except RunFileError:
            return []
        return [n for n in numbers if n < last and n not in self._read and not self._health.knows(n)]

    async def _read_on(self) -> None:
        """Read what is missing, the newest first, wherever the screen goes meanwhile."""
        while missing := self._missing(self._last):
            number, update = missing[-1], None
            with contextlib.suppress(RunFileError):  # the screen says so where that update is shown
                update = await self._source.load_in_thread(number)
            if update is not None:
                await asyncio.to_thread(self._health.add, update)
            self._read.add(number)
        self._done()
