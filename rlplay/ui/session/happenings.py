"""What a session is fed from: the events of a live engine or of a recording, and the protocol of their source."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rlplay.link.messages import AnyCommand, AnyEvent
from rlplay.trace.history import History
from rlplay.trace.records import Evaluated
from rlplay.trace.settings import Timeline
from rlplay.trace.update import Update


class Moved(msgspec.Struct, frozen=True):
    """A replay moved to this state of an update; `problem` says why it cannot be shown."""

    update: Update
    problem: str = ""


class Restored(msgspec.Struct, frozen=True):
    """The numbers, the first settings and all changes of a recorded run, read at once."""

    history: History
    timeline: Timeline
    back_to: int | None = None
    """The run went back to this update since the last time, so what was known of later ones is not theirs."""


Happening = AnyEvent | Moved | Restored


class Source(Protocol):
    """The origin of events: a live engine or a run file."""

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

    async def start(self) -> None:
        """Start, or restart after the engine died."""

    def events(self) -> AsyncIterator[Happening]:
        """The events, until the source ends."""

    async def send(self, command: AnyCommand) -> None:
        """Send a command; any answer is an event."""

    async def close(self) -> None:
        """End the source; the run stays on disk."""

    def load(self, number: int) -> Update | None:
        """A recorded update; None if its detail was not kept. RunFileError if it is damaged."""

    async def load_in_thread(self, number: int) -> Update | None:
        """The same for an update that nobody looks at, without holding up a key."""

    def recorded(self) -> list[int]:
        """The updates that `load` finds, ascending. RunFileError if the run file is damaged."""

    def snapshots(self) -> list[int]:
        """The updates whose state is on disk, ascending. RunFileError if the run file is damaged."""

    def held_out(self, number: int) -> Evaluated | None:
        """The newest held-out answers from after update `number` or before. RunFileError if they are damaged."""
