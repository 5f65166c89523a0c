"""What the screen says to the engine (commands, questions) and the engine to the screen (events, answers)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rlplay.scenario.schema import Job
from rlplay.scenario.script import Until
from rlplay.trace.codec import Codec
from rlplay.trace.questions import AnyAnswer, AnyQuestion
from rlplay.trace.records import AnyRecord, Choice
from rlplay.trusted import Grants


class Command(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Base of what the screen asks for."""


class Begin(Command, frozen=True):
    """The first command: what to run."""

    job: Job


class Trust(Command, frozen=True):
    """What the user lets run: sent before the job, and again before whatever comes after the user has named more."""

    grants: Grants


class Advance(Command, frozen=True):
    """Go on until the next token, phase, optimizer step or update, `count` times; "forever" until paused.

    "phase" ends a phase that has begun, "update" an update that has begun.
    """

    until: Until
    count: int = 1


class Pause(Command, frozen=True):
    """Stop at the next point (while sampling: the next token)."""


class Set(Command, frozen=True):
    """Change settings; each holds from the next phase that reads it. Refused with a Notice if they do not fit."""

    changes: dict[str, Any]


class Rewind(Command, frozen=True):
    """Go back to the state after update `update` (0: the start); an update in progress is given up."""

    update: int


class Prefer(Command, frozen=True):
    """Which answer of a pair of `Status.asks` is better: the first (a), the second (b) or neither (left out)."""

    pair: int
    choice: Choice


class Withhold(Command, frozen=True):
    """Take the credit of tokens away in update `update`, the next one that begins; without tokens, give it back.

    `tokens` are places in the flat token arrays that the update will have. A replay repeats its answers, so they are
    known from the first time. Refused with a Notice if another update begins next, or one is under way.
    """

    update: int
    tokens: list[int]


class RecordView(Command, frozen=True):
    """What the user has before them, noted in the run: a colour, "auto" for the phase's own, and a token."""

    lens: str
    completion: int
    token: int


class EndProbe(Command, frozen=True):
    """Do not go on with the answer to a question that is under way."""


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


class Abilities(msgspec.Struct, frozen=True):
    """What the trainer of another program, which the screen has entered, can do."""

    trainer: str
    cannot: dict[str, str]  # verbs that it does not know, each with the reason
    changeable: list[str]  # settings that it reads anew in every update


UNSAID = Abilities("a trainer that does not say what it can do", {}, [])


class Status(Event, frozen=True):
    """Where the engine stands; sent whenever it changes. `phase` is the phase that comes next or is under way."""

    running: bool
    update: int  # updates finished
    phase: Literal["sample", "score", "credit", "update", "after"]
    settings: dict[str, Any]
    finished: bool = False  # max_updates reached
    asks: list[int] = []  # pairs of the update under way that wait for a `Prefer`; without them it does not go on
    waits: bool = False  # an `Advance` was cut short by them; with the last one it goes on by itself
    abilities: Abilities | None = None  # of another program's trainer; None: rlplay's own engine
    kept: int = 0  # the last update whose state is on disk, from where the run can be resumed
    recorded: int | None = None  # the last update of a recording that is replayed; None: a run that is live


class LogLine(Event, frozen=True):
    """One line for the log panel."""

    level: Literal["debug", "info", "warning", "error"]
    text: str


class Failed(Event, frozen=True):
    """The engine cannot go on: what happened, where, what to do; `detail` is the traceback."""

    text: str
    detail: str = ""


AnySetting = Set | Rewind | Prefer | Withhold | RecordView
"""What changes a run without moving it on."""
AnyCommand = Trust | Begin | Advance | Pause | AnySetting | EndProbe | Stop | AnyQuestion
AnyEvent = Loading | Recorded | Status | LogLine | Failed | AnyAnswer

COMMANDS: Codec[AnyCommand] = Codec(AnyCommand)
EVENTS: Codec[AnyEvent] = Codec(AnyEvent)
