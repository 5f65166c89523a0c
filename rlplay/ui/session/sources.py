"""Sources of a session's events: an engine in another process, or a run file that is replayed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rlplay.foreign.copy import Copy, copy_again
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.link.messages import Advance, AnyCommand, AnyEvent, Failed, Pause, Rewind, Status
from rlplay.scenario.lesson import whole_script
from rlplay.scenario.reproduction import check_understood
from rlplay.scenario.schema import Job
from rlplay.scenario.subject import subject
from rlplay.tasks import speaker_of
from rlplay.trace.playhead import Stride, at, length, onward
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.update import Update
from rlplay.ui.session.happenings import Moved, Restored
from rlplay.ui.session.read_ahead import ReadAhead
from rlplay.ui.session.source import RecordedSource, Source, restored
from rlplay.ui.words.batch import batch

if TYPE_CHECKING:
    from rlplay.link.client import EngineProcess
    from rlplay.link.prestarted import Prestarted

PACE = 0.7
"""Seconds per update while a replay runs."""
POLL_SECONDS = 0.4
"""Seconds between two checks of a run file that may still grow."""


class LiveSource(Source):
    """An engine process for `job`; older updates come from its run file."""

    live = own_engine = True

    def __init__(self, job: Job, prestarted: Prestarted | None = None) -> None:
        """For a new engine, or one that was `prestarted`."""
        self._job, self._prestarted = job, prestarted
        self.path = Path(job.run)
        self.title, self.question, self.script = job.scenario.title, job.scenario.question, whole_script(job.scenario)
        self.stage, self.speaker = subject(job.scenario), speaker_of(job.scenario.task)
        self.about = job.scenario.summary.strip(), batch(job.scenario)
        self._engine: EngineProcess | None = None
        self._early: list[AnyCommand] = []  # commands sent before the engine exists
        self._past: Restored | None = None

    async def start(self) -> None:
        """Start the engine; after it died, restart it from the run's last snapshot."""
        from rlplay.link.client import EngineProcess

        # An engine that died before it created the run file left nothing to resume.
        resume = self._job.resume or (self._engine is not None and self.path.exists())
        reader = self._open() if self._engine is None and resume else None
        self._past = None if reader is None else restored(reader)
        if self._engine is not None:
            await self._engine.close()
        prestarted, self._prestarted = self._prestarted, None
        self._engine = EngineProcess(prestarted=prestarted)
        await self._engine.start(msgspec.structs.replace(self._job, resume=resume))
        early, self._early = self._early, []
        for command in early:
            await self._engine.send(command)

    async def events(self) -> AsyncIterator[AnyEvent | Restored]:
        """The engine's events until it ends; for a resumed run, first its history."""
        assert self._engine is not None
        if self._past is not None:
            yield self._past
        async for event in self._engine.events():
            yield event

    async def send(self, command: AnyCommand) -> None:
        """Pass a command to the engine."""
        if self._engine is None:
            self._early.append(command)
        else:
            await self._engine.send(command)

    async def close(self) -> None:
        """End the engine."""
        if self._engine is not None:
            await self._engine.close()
        elif self._prestarted is not None:
            self._prestarted.discard()
        await super().close()
        self._reader = self._ahead = None

    def _open(self) -> RunReader | None:
        if self._reader is not None and self._reader.is_replaced():
            self._reader = None  # a thread may still read the old file
        if self._reader is None:
            try:
                self._reader = RunReader(self.path)
                self._ahead = ReadAhead(self._reader)
            except RunFileError:
                return None
        return self._reader


class ReplaySource(RecordedSource):
    """A run file with the same commands: they move a playhead through the records."""

    live = False

    def __init__(self, path: Path) -> None:
        """Open the run; RunFileError if it cannot be read."""
        super().__init__(path)
        check_understood(self._reader)
        self._whole = Update(0)
        self._point = 0
        self._problem = ""
        self._running: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._copy: Copy | None = None
        self._thread: asyncio.Future[Any] | None = None

    async def start(self) -> None:
        """Show the newest update."""
        self._begin()
        numbers = self.recorded()
        self._go(numbers[-1] if numbers else 0)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._guarded(self._grow))

    async def send(self, command: AnyCommand) -> None:
        """Move the playhead; changes of settings have no effect. Read errors become events."""
        try:
            self._move(command)
            self._status()
        except RunFileError as error:
            self._put(Failed(str(error)))

    def _move(self, command: AnyCommand) -> None:
        match command:
            case Pause():
                self._stop()
            case Advance(until="forever"):
                self._stop()
                self._running = asyncio.create_task(self._guarded(self._play))
            case Advance():
                self._stop()
                until: Stride = "update" if command.until == "forever" else command.until
                for _ in range(command.count):
                    self._advance(until)
            case Rewind():
                self._stop()
                # A thinned run does not have every update.
                self._go(max((number for number in self.recorded() if number <= command.update), default=0))
            case _:
                pass

    async def close(self) -> None:
        """Close the file."""
        self._stop()
        if self._watch is not None:
            self._watch.cancel()
        if self._thread is not None:
            await asyncio.wait([self._thread])
        await super().close()

    def _status(self) -> None:
        number, done, numbers = self._whole.number, self._at_end, self.recorded()
        self._put(
            Status(
                running=self._running is not None and not self._running.done(),
                update=number if done else number - 1,
                phase=at(self._whole, self._point).phase,
                settings=self._reader.settings(number),
                finished=done and (not numbers or number >= numbers[-1]),
                recorded=max(numbers, default=0),
            )
        )

    def _go(self, number: int) -> None:
        """Go to the end of update `number`; 0 is the start of the run."""
        self._read(number)
        self._point = length(self._whole)
        self._show()
        self._status()

    def _read(self, number: int) -> None:
        """Read an update. A damaged update becomes an empty one with a problem; the others stay readable."""
        self._whole, self._point, self._problem = Update(number), 0, ""
        try:
            self._whole = (number and self.load(number)) or self._whole
        except RunFileError as error:
            self._problem = str(error)

    @property
    def _at_end(self) -> bool:
        return self._point >= length(self._whole)

    def _show(self) -> None:
        self._put(Moved(at(self._whole, self._point), self._problem))

    def _advance(self, until: Stride) -> bool:
        if self._at_end:
            later = [number for number in self.recorded() if number > self._whole.number]
            if not later:
                return False
            self._read(later[0])
        self._point = onward(self._whole, self._point, until)
        self._show()
        return True

    async def _play(self) -> None:
        numbers = self.recorded()
        if numbers and self._whole.number >= numbers[-1]:
            self._go(0)
        while self._advance("update"):
            self._status()
            await asyncio.sleep(PACE)
        self._running = None
        self._status()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            self._running = None

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do `work` in the background; an error becomes an event instead of getting lost with the task."""
        try:
            await work()
        except (RunFileError, ForeignRunError, OSError) as error:
            self._put(Failed(str(error)))

    async def _in_thread(self, work: Callable[..., Any], *given: Any) -> Any:
        """Do `work` in a thread, which `close` waits for: closing its file meanwhile would end the program."""
        self._thread = asyncio.ensure_future(asyncio.to_thread(work, *given))
        return await asyncio.shield(self._thread)

    async def _grow(self) -> None:
        self._copy, read = await self._in_thread(copy_again, self._reader), 0
        while True:
            await asyncio.sleep(0 if read else POLL_SECONDS)
            read = 0 if self._copy is None else await self._in_thread(self._copy.pull)
            if (last := self._reader.last_id()) == self._seen:
                continue
            fresh = self._reader.events(self._seen)
            self._seen = last
            stays = not self._at_end or self._running is not None
            if {"finished", "changed", "staged", "withheld", "rewound", "evaluated", "logged"} & {
                kind for kind, *_ in fresh
            }:
                back_to = min((number for kind, number, _ in fresh if kind == "rewound"), default=None)
                self._put(restored(self._reader, back_to))
            numbers = self.recorded()
            if numbers and not stays:
                self._go(numbers[-1])
