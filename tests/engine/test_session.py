"""The order in which the engine carries out what it is asked for."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

import pytest

from rlplay.algorithms.settings import Settings
from rlplay.engine.engine_process import CommandLoop
from rlplay.engine.run_status import RunStatus
from rlplay.link.messages import EVENTS, Advance, AnyCommand, Pause, Rewind, Stop


class Wire:
    """A screen that asks for `first`, and for the rest while that is being done."""

    def __init__(self, first: AnyCommand, *meanwhile: AnyCommand) -> None:
        self.commands: queue.Queue[AnyCommand | None] = queue.Queue()
        self.commands.put(first)
        self.meanwhile = list(meanwhile)
        self.running: list[bool] = []
        self.sizes: list[int] = []  # of what is sent, in bytes

    def send(self, event: Any) -> None:
        self.running.append(event.running)
        self.sizes.append(len(EVENTS.encode(event)))


class Engine:
    """Keeps the commands it gets, and asks whether to stop as a real one does; `last` is the number of deeds."""

    def __init__(self, wire: Wire, last: int) -> None:
        self.wire, self.last = wire, last
        self.done: list[tuple[Any, ...]] = []
        self.before = 0  # updates

    def advance(self, until: str, count: int, interrupted: Callable[[], bool]) -> int:
        while self.wire.meanwhile:
            self.wire.commands.put(self.wire.meanwhile.pop(0))
        self._did(until, count, interrupted())
        return 0

    def rewind(self, update: int) -> None:
        self._did("rewind", update)

    def _did(self, *deed: Any) -> None:
        self.done.append(deed)
        if len(self.done) == self.last:
            self.wire.commands.put(Stop())

    def status(self) -> RunStatus:
        return RunStatus(self.before + len(self.done), "sample", Settings(), False)

    def asks(self) -> list[Any]:
        return []


@pytest.mark.parametrize(
    ("first", "meanwhile", "done"),
    [
        (
            Advance("update"), [Advance("update"), Advance("token", 2)],
            [("update", 1, False), ("update", 1, False), ("token", 2, False)],
        ),
        (Advance("forever"), [Advance("update")], [("forever", 1, True), ("update", 1, False)]),
        (Advance("update"), [Advance("update"), Pause()], [("update", 1, True)]),
        (Advance("update"), [Advance("update"), Rewind(0)], [("update", 1, True), ("rewind", 0)]),
    ],
    ids=["steps come after steps", "a step ends a free run", "a pause forgets them", "so does going back"],
)  # fmt: skip
def test_what_is_asked_for_meanwhile(first: AnyCommand, meanwhile: list[AnyCommand], done: list[Any]) -> None:
    wire = Wire(first, *meanwhile)
    engine = Engine(wire, len(done))
    assert CommandLoop(wire, engine).serve() == 0  # type: ignore[arg-type]
    assert engine.done == done


def test_a_free_run_that_a_step_ends_does_not_seem_to_rest_in_between() -> None:
    wire = Wire(Advance("forever"), Advance("update"))
    assert CommandLoop(wire, Engine(wire, 2)).serve() == 0  # type: ignore[arg-type]
    assert wire.running == [False, True, True, False]


def test_a_status_late_in_a_run_is_as_small_as_early() -> None:
    sizes = []
    for before in (1, 10_000):
        wire = Wire(Advance("update"))
        engine = Engine(wire, 1)
        engine.before = before
        CommandLoop(wire, engine).serve()  # type: ignore[arg-type]
        sizes.append(max(wire.sizes))
    assert sizes[1] - sizes[0] <= 2, "an update's number of three bytes in place of one"
    assert sizes[1] < 4096
