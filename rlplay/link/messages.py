"""What the screen says to the engine (commands) and the engine to the screen (events)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rlplay.scenario.schema import Job
from rlplay.trace.codec import Codec
from rlplay.trace.records import AnyRecord, Credited, Stepped

Until = Literal["token", "phase", "step", "update", "forever"]


class Command(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Base of what the screen asks for."""


class Begin(Command, frozen=True):
    """The first command: what to run."""

    job: Job


class Advance(Command, frozen=True):
    """Go on until the next token, phase, optimizer step or update, `count` times; "forever" until paused.

    "phase" ends a phase that has begun, "update" an update that has begun.
    """

    until: Until
    count: int = 1


class Pause(Command, frozen=True):
    """Stop at the next point (while sampling: the next token)."""


class Set(Command, frozen=True):
    """Change one setting; it holds from the next phase that reads it. Refused with a Notice if not allowed."""

    name: str
    value: Any


class Rewind(Command, frozen=True):
    """Go back to the state after update `update` (0: the start); an update in progress is given up."""

    update: int


class WhatIf(Command, frozen=True):
    """What would the changed settings make of the same completions? Answered by `Imagined`; changes nothing."""

    changes: dict[str, Any]


class Stop(Command, frozen=True):
    """Save a snapshot if an update has ended since the last, close the run file and exit."""


class Event(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Base of what the engine reports."""


class Loading(Event, frozen=True):
    """Start-up progress; `fraction` from 0 to 1."""

    what: str
    fraction: float


class Recorded(Event, frozen=True):
    """A record, already committed to the run file (a `Sampled` that is not done yet is not kept)."""

    record: AnyRecord


class Status(Event, frozen=True):
    """Where the engine stands; sent whenever it changes. `phase` is the phase that comes next or is under way."""

    running: bool
    update: int  # updates finished
    phase: Literal["sample", "score", "credit", "update", "after"]
    settings: dict[str, Any]
    rewindable: list[int]  # updates that a Rewind reaches, cheaply or by replaying from the nearest snapshot
    finished: bool = False  # max_updates reached


class Imagined(Event, frozen=True):
    """The answer to a `WhatIf`; never recorded.

    `before` and `after` are what optimizer steps would record, one for each minibatch of a pass over all completions,
    by the log-probabilities of each completion's last step: by the settings as they were, and as they would be.
    """

    changes: dict[str, Any]
    update: int = 0
    refused: str = ""  # why it cannot be told, in one line; then the rest is empty
    held: list[str] = []  # settings whose change shows only with new samples or steps, and was left out
    credited: Credited | None = None  # as it would be; the candidates' probabilities, which stay, are left out
    before: list[Stepped] = []
    after: list[Stepped] = []
    losses: tuple[float, float] | None = None  # before and after: mean over the steps, no entropy bonus, no value loss


class LogLine(Event, frozen=True):
    """One line for the log panel."""

    level: Literal["debug", "info", "warning", "error"]
    text: str


class Failed(Event, frozen=True):
    """The engine cannot go on: what happened, where, what to do; `detail` is the traceback."""

    text: str
    detail: str = ""


AnyCommand = Begin | Advance | Pause | Set | Rewind | WhatIf | Stop
AnyEvent = Loading | Recorded | Status | Imagined | LogLine | Failed

COMMANDS: Codec[AnyCommand] = Codec(AnyCommand)
EVENTS: Codec[AnyEvent] = Codec(AnyEvent)
