"""What the screen says to the engine (commands) and the engine to the screen (events)."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rlplay.scenario.schema import Job
from rlplay.trace.codec import Codec
from rlplay.trace.records import AnyRecord, Choice, Credited, Stepped

Until = Literal["token", "phase", "step", "update", "forever"]
Writer = Literal["policy", "reference"]


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
    """Change settings; each holds from the next phase that reads it. Refused with a Notice if they do not fit."""

    changes: dict[str, Any]


class Rewind(Command, frozen=True):
    """Go back to the state after update `update` (0: the start); an update in progress is given up."""

    update: int


class Prefer(Command, frozen=True):
    """Which answer of a pair of `Status.asks` is better: the first (a), the second (b) or neither (left out)."""

    pair: int
    choice: Choice


class Look(Command, frozen=True):
    """What the user has before them, noted in the run: a colour, "auto" for the phase's own, and a token."""

    lens: str
    completion: int
    token: int


class Judge(Command, frozen=True):
    """What do the models make of the answers of a pair of `Status.asks`? Answered by `Judged`; changes nothing."""

    pair: int


class WhatIf(Command, frozen=True):
    """What would the changed settings make of the same completions? Answered by `Imagined`; changes nothing."""

    changes: dict[str, Any]


class Prefix(msgspec.Struct, frozen=True):
    """A prompt and the tokens that an answer to it begins with.

    `prompt` is what the user says. One of the run's own prompts is found by it, and comes with its columns and system
    message; with other `columns`, or none of the run's, it stands alone and goes through the chat template unless
    `plain`.
    """

    prompt: str
    answer: list[int] = []
    columns: dict[str, Any] | None = None
    plain: bool = False


class Peek(Command, frozen=True):
    """What could come next? Answered by `Peeked`, the last of several in a row. Probing is never recorded."""

    prefix: Prefix


class Continue(Command, frozen=True):
    """Go on from a prefix `count` times; `draw` counts further requests, which get other random numbers.

    Answered by `Continued`. The `writer`s policy and reference get the same random numbers. `greedy`: the likeliest
    token each time, once.
    """

    prefix: Prefix
    writer: Writer = "policy"
    count: int = 1
    greedy: bool = False
    draw: int = 0


class Estimate(Command, frozen=True):
    """What is a prefix worth? Answered by `Estimated` again and again until `count` samples, or the next command."""

    prefix: Prefix
    writer: Writer = "policy"
    count: int = 256


class Recall(Command, frozen=True):
    """How likely were these tokens after a prefix in the course of the run?

    Answered by `Recalled` again and again, from the first update `since` on whose weights are kept to the last, or
    until the next command.
    """

    prefix: Prefix
    token_ids: list[int]
    since: int = 0


class EndProbe(Command, frozen=True):
    """Do not go on with the `Continue`, `Estimate` or `Recall` under way."""


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
    asks: list[int] = []  # pairs of the update under way that wait for a `Prefer`; without them it does not go on
    waits: bool = False  # an `Advance` was cut short by them; with the last one it goes on by itself


class Judged(Event, frozen=True):
    """The answer to a `Judge`: how much of what each of the two answers of a pair has; never recorded."""

    pair: int
    update: int = 0
    refused: str = ""  # why it cannot be told, in one line; then the rest is empty
    scores: dict[str, tuple[float, float]] = {}  # first and second answer, by what the number is


class Imagined(Event, frozen=True):
    """The answer to a `WhatIf`; never recorded.

    `before` and `after` are what optimizer steps would record, one for each minibatch of a pass over all completions,
    by the log-probabilities of each completion's last step: by the settings as they were, and as they would be.
    """

    changes: dict[str, Any]
    update: int = 0
    refused: str = ""  # why it cannot be told, in one line; then the rest is empty
    settings: dict[str, Any] = {}  # all that it is told by
    held: list[str] = []  # settings whose change shows only with new samples or steps, and was left out
    credited: Credited | None = None  # as it would be; the candidates' probabilities, which stay, are left out
    before: list[Stepped] = []
    after: list[Stepped] = []
    losses: tuple[float, float] | None = None  # before and after: mean over the steps, no entropy bonus, no value loss


class Peeked(Event, frozen=True):
    """The answer to a `Peek`: the next-token distributions of policy and frozen reference after `update` updates.

    Probabilities are those at `temperature`, entropies and `kl` (policy ‖ reference) of this one position, in nats.
    """

    prefix: Prefix
    update: int = 0
    steps: int = 0  # optimizer steps of the next update that have been made already
    refused: str = ""  # why there is no answer, in one line; then the rest is empty
    unrewarded: str = ""  # why an answer to this prompt earns no reward; empty if it does
    temperature: float = 1.0
    prompt_texts: list[str] = []  # one string per token, the template's included
    texts: list[str] = []  # of the answer's tokens
    pieces: dict[int, str] = {}  # text of every id below and in the answer, alone
    probabilities: list[float] = []  # of the answer's own tokens, each after those before it
    ref_probabilities: list[float] = []
    top_ids: list[int] = []  # candidates: the likeliest under either, in the order of the policy
    top: list[float] = []
    ref_top: list[float] = []
    entropy: float = 0.0
    ref_entropy: float = 0.0
    kl: float = 0.0
    ended: bool = False  # the last token ends the answer: nothing comes next


class Tail(msgspec.Struct, frozen=True):
    """How an answer goes on after a prefix."""

    token_ids: list[int]
    texts: list[str]  # joined they are the text
    truncated: bool  # ran into the longest length
    reward: float | None  # of the whole answer; None if it earns none


class Continued(Event, frozen=True):
    """The answer to a `Continue`. Interrupted, it has no tails."""

    prefix: Prefix
    writer: Writer = "policy"
    greedy: bool = False
    refused: str = ""
    tails: list[Tail] = []
    pieces: dict[int, str] = {}


class Estimated(Event, frozen=True):
    """The answer to an `Estimate`: the mean reward of `count` answers that go on from the prefix.

    `interval` names what `low` and `high` are (95 %); empty if there is none yet.
    """

    prefix: Prefix
    writer: Writer = "policy"
    update: int = 0
    refused: str = ""
    count: int = 0
    unscored: int = 0  # sampled beside those, and no reward function answered
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    interval: Literal["", "Wilson", "Student t"] = ""
    done: bool = False


class Recalled(Event, frozen=True):
    """The answer to a `Recall`: probabilities of `token_ids` under the policy as it was after each of `updates`."""

    prefix: Prefix
    token_ids: list[int] = []
    refused: str = ""
    updates: list[int] = []
    probabilities: list[list[float]] = []  # a row for each update, at the run's temperature
    done: bool = False


class LogLine(Event, frozen=True):
    """One line for the log panel."""

    level: Literal["debug", "info", "warning", "error"]
    text: str


class Failed(Event, frozen=True):
    """The engine cannot go on: what happened, where, what to do; `detail` is the traceback."""

    text: str
    detail: str = ""


AnyProbe = Peek | Continue | Estimate | Recall
AnyProbed = Peeked | Continued | Estimated | Recalled
AnyCommand = Begin | Advance | Pause | Set | Rewind | Prefer | Look | Judge | WhatIf | AnyProbe | EndProbe | Stop
AnyEvent = Loading | Recorded | Status | Judged | Imagined | AnyProbed | LogLine | Failed

COMMANDS: Codec[AnyCommand] = Codec(AnyCommand)
EVENTS: Codec[AnyEvent] = Codec(AnyEvent)
