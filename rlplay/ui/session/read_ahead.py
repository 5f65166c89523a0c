"""Reads large updates before anybody asks for them, in a thread: one of 512 long answers takes longer than a key."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from typing import NamedTuple

from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.update import Update

AT_ONCE = 50_000
"""Tokens of an update whose digest takes a few milliseconds."""
KEPT = 3
"""Large updates in memory: the last one asked for, the one before it in the run and the one after it."""
QUIET = 0.3
"""Seconds after an update was asked for until its neighbours are read: decoding them would hold up its drawing."""


class _Read(NamedTuple):
    ids: list[int]
    """Of its records when it was read: they are others as soon as the file has something newer."""
    update: Update


class ReadAhead:
    """The updates of a run file; large ones stay in memory while they are what the file has."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._kept: OrderedDict[int, _Read] = OrderedDict()
        self._task: asyncio.Task[None] | None = None
        self._thread: asyncio.Future[_Read] | None = None
        self._resting = False

    def load(self, number: int) -> Update:
        """Update `number`, as `RunReader.load` finds it; RunFileError as there. Soon its neighbours are read, too."""
        found = self._kept[number] if self._holds(number) else self._read(number)
        if found.update.tokens > AT_ONCE:
            self._keep(number, found)
            if self._task is not None:
                self._task.cancel()
            self._task = asyncio.get_running_loop().create_task(self._read_around(number))
        return found.update

    async def load_in_thread(self, number: int) -> Update:
        """The same for what nobody looks at: in a thread, and without its neighbours."""
        if self._holds(number):
            return self._kept[number].update
        return (await self._in_thread(number)).update

    async def rest(self) -> None:
        """Read no further. A thread that reads is waited for: closing its file meanwhile would end the program."""
        self._resting = True
        if self._task is not None:
            self._task.cancel()
        if self._thread is not None:
            await asyncio.wait([self._thread])

    def _holds(self, number: int) -> bool:
        return number in self._kept and self._kept[number].ids == self._reader.record_ids(number)

    def _keep(self, number: int, found: _Read) -> None:
        self._kept[number] = found
        self._kept.move_to_end(number)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _read(self, number: int) -> _Read:
        return _Read(self._reader.record_ids(number), self._reader.load(number))

    async def _read_around(self, number: int) -> None:
        await asyncio.sleep(QUIET)
        with contextlib.suppress(RunFileError):  # whoever looks at that update gets to know why it cannot be read
            for near in self._beside(number):
                if not self._holds(near):
                    self._keep(near, await self._in_thread(near))
                    self._kept.move_to_end(number)

    async def _in_thread(self, number: int) -> _Read:
        """Read an update in the one thread, once it is free."""
        while self._thread is not None and not self._thread.done():
            await asyncio.wait([self._thread])
        if self._resting:
            raise asyncio.CancelledError
        self._thread = asyncio.ensure_future(asyncio.to_thread(self._read, number))
        return await asyncio.shield(self._thread)

    def _beside(self, number: int) -> list[int]:
        numbers = self._reader.detailed()
        return [each for each in numbers if each > number][:1] + [each for each in numbers if each < number][-1:]
