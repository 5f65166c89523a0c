"""The source of a session's events, with what it reads of the run's file: the updates that were."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from rlplay.link.messages import AnyCommand, Recorded
from rlplay.plain_yaml import PlainYamlError
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.subject import subject
from rlplay.tasks import speaker_of
from rlplay.trace.records import Evaluated, Started
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update
from rlplay.ui.session.happenings import Happening, Restored
from rlplay.ui.session.read_ahead import ReadAhead


class Source(ABC):
    """The origin of events: a live engine or a run file. Before there is a file, there are no updates."""

    live: bool
    own_engine: bool
    """Whether rlplay's own engine trains, which this screen started; nothing that the other side sends decides it."""
    path: Path
    """The run file; a live engine creates it when it starts."""
    title: str
    """The scenario's title, known before anything else."""
    question: str
    """The scenario's question."""
    script: list[dict[str, Any]]
    """The scenario's lesson; empty for none."""
    stage: str
    """What the screen gives its room to at first, one of `verbs.STAGES`."""
    speaker = ""
    """What answers the model between its turns; "" for the role that the chat template names."""
    curves_only = False
    """Whether another trainer's curves are all that there is of the run: it has no answers."""
    about: tuple[str, ...] = ()
    """Paragraphs about what an engine that starts is going to do."""
    _reader: RunReader | None = None
    _ahead: ReadAhead | None = None

    @abstractmethod
    async def start(self) -> None:
        """Start, or restart after the engine died."""

    @abstractmethod
    def events(self) -> AsyncIterator[Happening]:
        """The events, until the source ends."""

    @abstractmethod
    async def send(self, command: AnyCommand) -> None:
        """Send a command; any answer is an event."""

    def load(self, number: int) -> Update | None:
        """A recorded update; None if its detail was not kept. RunFileError if it is damaged."""
        self._open()
        update = None if self._ahead is None else self._ahead.load(number)
        return update if update is not None and (update.sampled is not None or self.curves_only) else None

    async def load_in_thread(self, number: int) -> Update | None:
        """The same for an update that nobody looks at, without holding up a key."""
        self._open()
        return None if self._ahead is None else await self._ahead.load_in_thread(number)

    def recorded(self) -> list[int]:
        """The updates that `load` finds, ascending. RunFileError if the run file is damaged."""
        reader = self._open()
        return [] if reader is None else reader.updates() if self.curves_only else reader.detailed()

    def snapshots(self) -> list[int]:
        """The updates whose state is on disk, ascending. RunFileError if the run file is damaged."""
        reader = self._open()
        return [] if reader is None else [snapshot.update for snapshot in reader.snapshots()]

    def held_out(self, number: int) -> Evaluated | None:
        """The newest held-out answers from after update `number` or before. RunFileError if they are damaged."""
        reader = self._open()
        return None if reader is None else reader.held_out(number)

    async def close(self) -> None:
        """End the source, whose file no thread reads any more then; the run stays on disk."""
        if self._ahead is not None:
            await self._ahead.rest()
        if self._reader is not None:
            self._reader.close()

    def _open(self) -> RunReader | None:
        return self._reader


class RecordedSource(Source):
    """A source whose run file others write, or wrote. It has no lesson."""

    own_engine = False
    _reader: RunReader
    _ahead: ReadAhead

    def __init__(self, path: Path) -> None:
        """Open the run; RunFileError if it cannot be read."""
        self.path = path
        self._reader = RunReader(path)
        self._ahead = ReadAhead(self._reader)
        self.title, self.question, self.script = self._reader.started.title, "", list[dict[str, Any]]()
        started = self._reader.started
        self.stage, self.speaker = _subject_of(started)
        bare = bool(self._reader.updates()) and not self._reader.detailed()
        self.curves_only = bool(started.source) and (self.stage == "curve" or bare)
        if self.curves_only:
            self.stage = "curve"
        self._queue: asyncio.Queue[Happening] = asyncio.Queue()
        self._seen = 0

    async def events(self) -> AsyncIterator[Happening]:
        """What was put into the queue."""
        while True:
            yield await self._queue.get()

    def _put(self, event: Happening) -> None:
        self._queue.put_nowait(event)

    def _begin(self) -> None:
        """Tell all that the file has so far, but for its tokens."""
        self._put(Recorded(self._reader.started))
        self._put(restored(self._reader))
        self._seen = self._reader.last_id()


def _subject_of(started: Started) -> tuple[str, str]:
    """The subject of a recorded run, and who speaks with the model; all panels if its scenario cannot be read."""
    try:
        scenario = scenario_of(started)
        return subject(scenario), speaker_of(scenario.task)
    except (msgspec.MsgspecError, PlainYamlError):
        return "all", ""


def restored(reader: RunReader, back_to: int | None = 0) -> Restored:
    """The numbers of the run in a file, which went back to update `back_to` since the last time."""
    return Restored(reader.history(), reader.timeline(), back_to)
