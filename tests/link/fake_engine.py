"""An engine process without a model: real entry point and wire, a pretended driver; the scenario's name says how."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from rlplay.algorithms.apply import apply_all
from rlplay.algorithms.settings import Settings
from rlplay.containment import OwnError, contained
from rlplay.engine.engine_process import main
from rlplay.engine.run_status import RunStatus
from rlplay.link import framing
from rlplay.scenario.schema import Job
from rlplay.trace.questions import (
    AnyAnswer,
    AnyProbe,
    AnyProbed,
    AnyQuestion,
    Estimate,
    Estimated,
    Imagined,
    Judge,
    Peeked,
    WhatIf,
)
from rlplay.trace.records import AnyRecord, Changed, Finished, Looked, Notice, Rewound
from rlplay.trace.runfile import RunFileError
from tests.recorded import synthetic_sampling, synthetic_started, synthetic_update


def _end_again() -> None:
    while True:
        with contextlib.suppress(BaseException):
            os._exit(0)


BUSY: dict[str, Callable[[], object]] = {
    "sleeping": lambda: time.sleep(600),
    "ending": _end_again,
    "matching": lambda: re.match("(a+)+$", "a" * 60 + "b"),  # keeps the interpreter for years
}
"""What a user's function may be busy with when the screen ends."""
ENOUGH = 8
"""Estimates that are sent before one waits for the next command."""


class FakeDriver:
    """Plays synthetic updates; misbehaves as the scenario's name asks."""

    def __init__(self, job: Job, sink: Callable[[AnyRecord], None]) -> None:
        self.manner = job.scenario.name
        self.sink = sink
        self.settings = Settings(epsilon=0.2)
        self.done = 0

    def load(self, progress: Callable[[str, float], None]) -> None:
        if self.manner == "unloadable":
            raise ValueError("no model at /nowhere; give --model a folder or a name")
        if self.manner == "noisy":
            print("x" * 3_000_000, end="\n[bold]after\n")
            os.write(2, b"\xff\xfe broken \x1b[31m\r100%\n")
        self.sink(synthetic_started())
        progress("ready", 1.0)

    def advance(self, until: str, count: int, interrupted: Callable[[], bool]) -> None:
        for _ in range(count if until != "forever" else 10_000):
            if self.manner == "dying":
                print("last words", file=sys.stderr, flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
            if self.manner in BUSY:
                print(f"now busy: {os.getpid()}", flush=True)
                with contained("it", lambda error: OwnError(str(error))):
                    BUSY[self.manner]()
            if self.manner == "failing":
                raise {"token": KeyError("reward 'correct' found no answer"), "phase": MemoryError()}.get(
                    until, RunFileError("run cannot be written (disk full); free some space")
                )
            for record in [*synthetic_sampling(self.done + 1), *synthetic_update(self.done + 1)[1:]]:
                self.sink(record)
                if isinstance(record, Finished):
                    self.done += 1
                if interrupted():
                    return

    def set(self, changes: dict[str, Any]) -> None:
        before, self.settings = self.settings, apply_all(self.settings, changes)
        for name, value in changes.items():
            was = getattr(before, name)
            self.sink(Changed(update=self.done + 1, phase="sample", name=name, value=value, previous=was))

    def look(self, lens: str, completion: int, token: int) -> None:
        self.sink(Looked(update=self.done + 1, phase="sample", lens=lens, completion=completion, token=token))

    def waits(self, _question: AnyQuestion) -> bool:
        return False

    def answers(self, question: AnyQuestion, interrupted: Callable[[], bool]) -> Iterator[AnyAnswer]:
        if isinstance(question, WhatIf):
            yield self.what_if(question.changes)
        elif not isinstance(question, Judge):
            yield from self.probe(question, interrupted)

    def what_if(self, changes: dict[str, Any]) -> Imagined:
        if self.done == 0:
            raise ValueError("this update has no credit yet")
        _, _, credited, *steps, _ = synthetic_update(self.done)
        return Imagined(changes, self.done, credited=credited, before=steps, after=steps, losses=(0.1, 0.2))

    def probe(self, question: AnyProbe, interrupted: Callable[[], bool]) -> Iterator[AnyProbed]:
        if question.prefix.prompt == "":
            raise ValueError("the prompt is empty")
        if isinstance(question, Estimate):
            count = 0
            while not interrupted():
                if count < ENOUGH:
                    count += 1
                    yield Estimated(question.prefix, update=self.done, count=count, mean=0.5)
            yield Estimated(question.prefix, update=self.done, count=count, mean=0.5, done=True)
        else:
            yield Peeked(question.prefix, update=self.done)

    def rewind(self, update: int) -> None:
        if update > self.done:
            raise ValueError(f"cannot rewind to update {update}: this run has reached update {self.done}")
        reached, self.done = self.done, update
        self.sink(Rewound(update=update, abandoned=reached))

    def asks(self) -> list[int]:
        return []

    def note(self, level: str, text: str, detail: str = "") -> None:
        self.sink(Notice(update=self.done, level=level, text=text, detail=detail))

    def status(self) -> RunStatus:
        return RunStatus(self.done, "sample", self.settings, False)

    def close(self) -> None:
        print("closed", flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["garbling"]:
        host, _, port = os.environ[framing.ADDRESS].rpartition(":")
        sock = socket.create_connection((host, int(port)))
        sock.sendall(framing.pack(os.environ[framing.TOKEN].encode()) + framing.pack(b"\xc1 no event"))
        time.sleep(60)
    sys.exit(main(lambda _progress: FakeDriver))
