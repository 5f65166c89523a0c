"""A run that another program trains: its records come from the recording, and the trainer takes commands."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from rlplay.algorithms.setting_values import fitting
from rlplay.foreign.copy import Copy
from rlplay.link import framing
from rlplay.link.messages import COMMANDS, EVENTS, UNSAID, AnyCommand, Failed, Recorded, Status
from rlplay.link.trainer_address import Door
from rlplay.trace.records import AnyRecord, Notice
from rlplay.trace.update import Update
from rlplay.ui.session.source import RecordedSource

_WAITING, _PAUSE = 1000, 0.05
"""Events that wait for the screen at most, and the seconds between looks at them."""

POLL_SECONDS = 0.3
"""Seconds between two looks at the recording."""
GONE = "The trainer no longer answers. Its recording stays: what it wrote until now is here."


class AttachedSource(RecordedSource):
    """A trainer that listens; leaving it, or losing it, does not stop the training."""

    live = True

    def __init__(self, copy: Copy, door: Door) -> None:
        """The run's local copy, and where its trainer listens."""
        super().__init__(copy.path)
        self._copy, self._door = copy, door
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._pull: asyncio.Future[int] | None = None
        self._growing = asyncio.Lock()
        self._over = False

    async def start(self) -> None:
        """Enter the trainer, and show the newest update. Raises OSError if nobody listens any more."""
        await self._rest()
        reader, self._writer = await asyncio.open_connection(self._door.host, self._door.port, limit=framing.BUFFER)
        self._writer.write(framing.pack(self._door.token.encode()))
        self._begin()
        if numbers := self.recorded():
            self._show(self._reader.load(numbers[-1]))
        self._tasks = [asyncio.create_task(self._hear(reader)), asyncio.create_task(self._grow())]

    async def send(self, command: AnyCommand) -> None:
        """Pass a command to the trainer."""
        if self._writer is not None:
            with contextlib.suppress(ConnectionError):
                self._writer.write(framing.pack(COMMANDS.encode(command)))
                await self._writer.drain()

    async def close(self) -> None:
        """Leave the trainer, which goes on."""
        await self._rest()
        if self._writer is not None:
            self._writer.close()
        await super().close()

    def snapshots(self) -> list[int]:
        """None: the weights are the trainer's."""
        return []

    async def _rest(self) -> None:
        """End the tasks. A pull goes on in its thread, and closing its database meanwhile would end the program."""
        for task in self._tasks:
            task.cancel()
        if self._pull is not None:
            await asyncio.wait([self._pull])

    def _show(self, update: Update) -> None:
        parts: list[AnyRecord | None] = [update.sampled, update.scored, update.credited, *update.steps, update.finished]
        for record in parts:
            if record is not None:
                self._put(Recorded(record))

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(framing.FrameError, msgspec.MsgspecError):
            while (data := await framing.read(reader)) is not None:
                event = EVENTS.decode(data)
                if isinstance(event, Recorded) and not isinstance(event.record, Notice):
                    continue  # records come from the recording, where they are checked
                while self._queue.qsize() > _WAITING:
                    await asyncio.sleep(_PAUSE)  # a trainer that says more than the screen can take waits
                self._over = isinstance(event, Failed) or (isinstance(event, Status) and event.finished)
                if isinstance(event, Status):
                    if not event.running:
                        await self._catch_up()
                    event = msgspec.structs.replace(
                        event, settings=fitting(event.settings), abilities=event.abilities or UNSAID
                    )
                self._put(event)
        if not self._over:
            self._put(Failed(GONE))

    async def _grow(self) -> None:
        while True:
            try:
                await self._take_new()
            except (ValueError, OSError) as error:
                self._put(Failed(str(error)))
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _catch_up(self) -> None:
        """Take what the trainer has recorded before it paused, so that nobody asks about the update before."""
        with contextlib.suppress(ValueError, OSError):  # which the next look says
            await self._take_new()

    async def _take_new(self) -> None:
        """Take the records that are new. Raises ValueError or OSError if that cannot be done."""
        async with self._growing:
            self._pull = asyncio.ensure_future(asyncio.to_thread(self._copy.pull))
            await asyncio.shield(self._pull)
            for key, record in self._reader.follow(self._seen):
                self._seen = key
                self._put(Recorded(record))
