"""Lets the health of a run take its updates: those that arrive, and from the run file those that came before.

The digest of a large update takes longer than a key may, so a thread makes it. Only the screen's own thread touches the
health, and it drops what was made of an update that has been undone meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial

from rlplay.health.run import Health, Taken, taken, wanted
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.update import Update
from rlplay.ui.session.happenings import Source

AT_ONCE = 50_000
"""Tokens of an update whose digest takes a few milliseconds."""


@dataclass(eq=False)
class _Work:
    """An update on its way to the health."""

    number: int
    undone: bool = False


class Digesting:
    """Takes one large update at a time, and calls `done` when more is known."""

    def __init__(self, health: Health, source: Source, done: Callable[[], None]) -> None:
        self._health, self._source, self._done = health, source, done
        self._busy = False
        self._last = self._complete = 0
        self._read: set[int] = set()  # from the run file
        self._reading: asyncio.Task[None] | None = None
        self._under_way: list[_Work] = []

    def take(self, update: Update) -> None:
        """Let the health take `update`: at once, or soon if it is large."""
        if update.tokens <= AT_ONCE:
            self._health.add(update)
        elif not self._busy and not self._health.holds(update) and update.sampled is not None and update.sampled.done:
            self._busy = True
            # A copy, because the screen's thread goes on filling in the update.
            making = asyncio.get_running_loop().run_in_executor(None, taken, copy(update))
            making.add_done_callback(partial(self._finished, self._begin(update.number)))

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
        for work in self._under_way:
            work.undone = work.undone or work.number > number

    def stop(self) -> None:
        """Read no further."""
        if self._reading is not None:
            self._reading.cancel()

    def _begin(self, number: int) -> _Work:
        work = _Work(number)
        self._under_way.append(work)
        return work

    def _end(self, work: _Work, made: Taken | None) -> None:
        self._under_way.remove(work)
        if made is not None and not work.undone:
            self._health.keep(made)

    def _finished(self, work: _Work, making: asyncio.Future[Taken | None]) -> None:
        self._busy = False
        failed = making.exception()
        self._end(work, None if failed else making.result())
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
        while missing := self._missing(self._last):
            work, made = self._begin(missing[-1]), None
            try:
                if (update := await self._source.load_in_thread(work.number)) is not None:
                    made = await asyncio.to_thread(taken, update)
            except RunFileError:
                pass  # the screen says so where that update is shown
            finally:
                self._end(work, made)
            if not work.undone:
                self._read.add(work.number)
        self._done()
