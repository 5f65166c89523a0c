"""Where the time of an update goes: seconds by part, which add up to the whole.

A part inside another counts for the inner one alone, but all of an evaluation is its own: it is no part of an update.
The driver owns the stopwatch and lets it run while it advances
the run; questions in between, such as a probe, count for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import torch

from rlplay.trace.parts import EVALUATE, OTHER

Moment = TypeVar("Moment")
Found = TypeVar("Found")

_running: Stopwatch | None = None


class Mark(Protocol):
    """A moment in a device's work."""

    def seconds_to(self, later: Any) -> float:
        """From this moment to a `later` one; the device has come to both."""


class _Now:
    """The moment at which Python is here, and the device has done all that it was given."""

    def __init__(self, wait: Callable[[], object]) -> None:
        wait()
        self._at = time.perf_counter()

    def seconds_to(self, later: _Now) -> float:
        return later._at - self._at


class _Event:
    """The moment at which a GPU comes to here in its work; Python goes on without it."""

    def __init__(self) -> None:
        self._event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self._event.record()

    def seconds_to(self, later: _Event) -> float:
        return float(self._event.elapsed_time(later._event)) / 1000


def _at_once() -> None:
    """A CPU has done its work when Python goes on."""


class Stopwatch:
    """Runs inside `with`; what no `spent_on` claims is `OTHER`.

    A GPU works on while Python goes on, and its work counts where it belongs. CUDA notes the time of every change by
    itself, which is read when somebody asks; another accelerator is waited for at every change.
    """

    def __init__(self, device: torch.device) -> None:
        self._wait: Callable[[], object] = torch.accelerator.synchronize if device.type != "cpu" else _at_once
        self._mark: Callable[[], Mark] = _Event if device.type == "cuda" else lambda: _Now(self._wait)
        self._changes: list[tuple[str, Mark]] = []  # what the time before each mark counts for, "" for nothing
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []

    def __enter__(self) -> None:
        global _running  # noqa: PLW0603 - a process advances one run at a time
        _running = self
        self.begin(OTHER)

    def __exit__(self, *raised: object) -> None:
        global _running  # noqa: PLW0603
        self.end()
        _running = None

    def begin(self, name: str) -> None:
        """From now on time counts for `name`."""
        self._change()
        self._open.append(name)

    def end(self) -> None:
        """From now on time counts for what was before."""
        self._change()
        self._open.pop()

    def take(self) -> dict[str, float]:
        """Seconds by part since the last time, which then begin at 0 again."""
        self._change()
        self._add_up()
        taken, self._seconds = self._seconds, {}
        return taken

    def take_part(self, name: str) -> float:
        """The same of one part."""
        self._add_up()
        return self._seconds.pop(name, 0.0)

    def _change(self) -> None:
        name = EVALUATE if EVALUATE in self._open else self._open[-1] if self._open else ""
        self._changes.append((name, self._mark()))

    def _add_up(self) -> None:
        """Count the time between the changes so far; the last one is where the next time begins."""
        self._wait()
        for (_, before), (name, mark) in pairwise(self._changes):
            if name:
                self._seconds[name] = self._seconds.get(name, 0.0) + before.seconds_to(mark)
        del self._changes[:-1]


@contextmanager
def spent_on(name: str) -> Iterator[None]:
    """What happens inside counts for `name`, if a stopwatch runs. Also a decorator."""
    watch = _running
    if watch is None:
        yield
        return
    watch.begin(name)
    try:
        yield
    finally:
        watch.end()


def timed(name: str, moments: Generator[Moment, None, Found]) -> Generator[Moment, None, Found]:
    """The same moments; the time that they take counts for `name`, the time between them does not."""
    while True:
        with spent_on(name):
            try:
                moment = next(moments)
            except StopIteration as over:
                found: Found = over.value
                return found
        yield moment
