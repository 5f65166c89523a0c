"""Where the time of an update goes: seconds by part, which add up to the whole.

A part inside another counts for the inner one alone, but all of an evaluation is its own: it is no part of an update.
The driver owns the stopwatch and lets it run while it advances
the run; questions in between, such as a probe, count for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from rlplay.trace.parts import EVALUATE, OTHER

Moment = TypeVar("Moment")
Found = TypeVar("Found")

_running: Stopwatch | None = None


def _at_once() -> None:
    """A CPU has done its work when Python goes on."""


class Stopwatch:
    """Runs inside `with`; what no `spent_on` claims is `OTHER`.

    A GPU works on while Python goes on; it is waited for at every change, so that its work counts where it belongs.
    """

    def __init__(self, device: torch.device) -> None:
        self._wait: Callable[[], object] = torch.accelerator.synchronize if device.type != "cpu" else _at_once
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

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
        self._count()
        self._open.append(name)

    def end(self) -> None:
        """From now on time counts for what was before."""
        self._count()
        self._open.pop()

    def take(self) -> dict[str, float]:
        """Seconds by part since the last time, which then begin at 0 again."""
        self._count()
        taken, self._seconds = self._seconds, {}
        return taken

    def take_part(self, name: str) -> float:
        """The same of one part."""
        return self._seconds.pop(name, 0.0)

    def _count(self) -> None:
        if self._open:
            self._wait()
        now = time.perf_counter()
        if self._open:
            name = EVALUATE if EVALUATE in self._open else self._open[-1]
            self._seconds[name] = self._seconds.get(name, 0.0) + now - self._since
        self._since = now


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
