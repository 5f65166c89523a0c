"""What a piece of code makes of a GPU's time: kernels, replays of graphs, and moments in which the host waits.

    with counted() as found:
        driver.advance("phase", 1, lambda: False)
    print(found)

Waits are counted by reason and line of rlplay. A kernel of a graph is no launch of its own.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from tests.gpu import cuda, library

_OURS = "/rlplay/"


@dataclass
class Found:
    """Counts, which are complete once the `with` ends."""

    waits: Counter[str] = field(default_factory=Counter)
    """By reason and line of rlplay, and the line that led there; "backward" on autograd's own thread."""
    kernels: Counter[str] = field(default_factory=Counter)
    """By operator, copies included."""
    replays: int = 0
    """How often graphs were replayed."""

    def __str__(self) -> str:
        """A table, most frequent first."""
        head = f"{self.waits.total()} waits, {self.kernels.total()} kernels, {self.replays} replays of graphs"
        rows = [f"{times:6} {what}" for counts in (self.waits, self.kernels) for what, times in counts.most_common(20)]
        return "\n".join([head, *rows])


_counting: list[Found] = []


def watch(stand_in: object) -> None:
    """Let the stand-in tell of waits and replays, from now on."""
    global _callback  # noqa: PLW0603 - C keeps no reference to it
    _callback = library.WAIT(lambda why: _waited(why.decode()))
    stand_in.stand_in_on_wait(_callback)  # type: ignore[attr-defined]
    cuda.waited = _waited
    cuda.Graph.replayed = _replayed


@contextmanager
def counted() -> Iterator[Found]:
    """Count what is inside."""
    found = Found()
    _launches()
    _counting.append(found)
    try:
        yield found
    finally:
        _counting.remove(found)
        found.kernels.update(_launches())


def _launches() -> dict[str, int]:
    return cuda.counts(cuda._stand_in.stand_in_take_launches())


def _waited(why: str) -> None:
    for found in _counting:
        found.waits[f"{why} {_line()}"] += 1


def _replayed(_graph: cuda.Graph) -> None:
    for found in _counting:
        found.replays += 1


def _line() -> str:
    """The innermost line of rlplay, and the one of another file that led there."""
    lines: dict[str, int] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(lines) < 2:
        name = frame.f_code.co_filename
        if _OURS in name and "/site-packages/" not in name:
            lines.setdefault(name.rpartition(_OURS)[2], frame.f_lineno)
        frame = frame.f_back
    return " < ".join(f"{name}:{line}" for name, line in lines.items()) or "backward"
