"""Lets the health of a run take its updates: those that arrive, and from the run file those that came before.

The digest of a large update takes longer than a key may, so a thread makes it. Only the screen's own thread touches the
health, and what a thread makes of an update that has been undone meanwhile is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from functools import partial

from rlplay.health.health_of_run import Health, UpdateDigest, digest_update, wanted
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.update import Update
from rlplay.ui.session.read_ahead import AT_ONCE
from rlplay.ui.session.source import Source


class Digesting:
    """Takes one large update at a time, and calls `done` when more is known."""

    def __init__(self, health: Health, source: Source, done: Callable[[], None]) -> None:
        self._health, self._source, self._done = health, source, done
        self._busy = False
        self._last = 0
        self._complete: tuple[int, int] | None = (
            None  # the last update before which all is known, after so many rewinds
        )
        self._reading: asyncio.Task[None] | None = None
        self._read: dict[int, None] = health.run.by_update()  # from the run file
        self._under_way: dict[int, object] = health.run.by_update()  # the newest work on each update

    def take(self, update: Update) -> None:
        """Let the health take `update`: at once, or soon if it is large."""
        if update.tokens <= AT_ONCE:
            self._health.add(update)
        elif not self._busy and not self._health.holds(update) and update.sampled is not None and update.sampled.done:
            self._busy = True
            # A copy, because the screen's thread goes on filling in the update.
            making = asyncio.get_running_loop().run_in_executor(None, digest_update, copy(update))
            making.add_done_callback(partial(self._finished, update.number, self._begin(update.number)))

    def left(self, last: int) -> int:
        """How many updates before `last` have to be read before the health there is known; their reading begins."""
        if (last, self._health.run.rewinds) == self._complete:
            return 0
        self._last, missing = last, self._missing(last)
        if not missing:
            self._complete = last, self._health.run.rewinds
        elif self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_task(self._read_on())
        return len(missing)

    def stop(self) -> None:
        """Read no further."""
        if self._reading is not None:
            self._reading.cancel()

    def _begin(self, number: int) -> object:
        work = self._under_way[number] = object()
        return work

    def _end(self, number: int, work: object, made: UpdateDigest | None) -> bool:
        """Let the health have what was made; False if the update has been undone, or is worked on anew."""
        if self._under_way.get(number) is not work:
            return False
        del self._under_way[number]
        if made is not None:
            self._health.keep(made)
        return True

    def _finished(self, number: int, work: object, making: asyncio.Future[UpdateDigest | None]) -> None:
        self._busy = False
        failed = making.exception()
        self._end(number, work, None if failed else making.result())
        self._done()
        if failed is not None:
            raise failed

    def _missing(self, last: int) -> list[int]:
        try:
            numbers = wanted(self._source.recorded(), last)
        except RunFileError:
            return []
        return [n for n in numbers if n < last and n not in self._read and not self._health.knows(n)]

    async def _read_on(self) -> None:
        """Read what is missing, the newest first, wherever the screen goes meanwhile."""
        try:
            while missing := self._missing(self._last):
                await self._read_one(missing[-1])
        finally:
            self._done()

    async def _read_one(self, number: int) -> None:
        """Read an update; one that cannot be read is left out, and not read again."""
        work, made = self._begin(number), None
        try:
            if (update := await self._source.load_in_thread(number)) is not None:
                made = await asyncio.to_thread(digest_update, update)
        except RunFileError:
            pass  # the screen says so where that update is shown
        except Exception:
            if self._end(number, work, None):
                self._read[number] = None
            raise
        if self._end(number, work, made):
            self._read[number] = None
