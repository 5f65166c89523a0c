"""What is known of the updates of a run, by number: from the records that arrive, and from those that are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from rlplay.trace.records import AnyRecord

T = TypeVar("T")

MOST = 160
"""Updates kept, and at most twice as many. Of a longer run, every second, third or further one is read."""


class Known(ABC, Generic[T]):
    """The entries of the live branch, and the records that are on disk and still to be read."""

    def __init__(self, by_update: Callable[[], dict[int, Any]] = dict) -> None:
        """`by_update` makes a table whose entries going back drops: `Run.by_update`."""
        self.stale = False  # the run file may have other records than those known
        self._kept: dict[int, T] = by_update()
        self._missing: dict[int, None] = by_update()
        self._changes = 0

    @property
    def most(self) -> int:
        """Updates to keep, up to twice as many: `MOST`, or fewer if they are large."""
        return MOST

    @property
    def missing(self) -> list[int]:
        """The updates whose records are still to be read, ascending."""
        return list(self._missing)

    @property
    def version(self) -> tuple[int, int]:
        """Another one whenever what is known or missing has changed, also by going back."""
        return self._changes, len(self._kept) + len(self._missing)

    @abstractmethod
    def add(self, record: AnyRecord) -> None:
        """Take any record; most are ignored."""

    def expect(self, recorded: Iterable[int]) -> None:
        """The updates on record: those not yet read are `missing`, those no longer there are dropped."""
        numbers, self.stale = sorted(recorded), False
        for number in self._kept.keys() - set(numbers):
            del self._kept[number]
        wanted = dict.fromkeys([*numbers[:: -(-len(numbers) // self.most) or 1], *numbers[-1:]])
        self._missing.clear()
        self._missing.update((number, None) for number in wanted if number not in self._kept)
        self._changes += 1

    def take(self, number: int, record: AnyRecord | None) -> None:
        """A missing record was read; without it, or if it is of another update, there is a gap."""
        self._missing.pop(number, None)
        if record is not None and record.update == number:
            self.add(record)

    def _keep(self, number: int, entry: T) -> None:
        self._kept[number] = entry
        self._changes += 1
        tables: tuple[dict[int, Any], ...] = self._kept, self._missing
        for table in tables:
            while len(table) > 2 * self.most:
                for thinned in sorted(table)[1:-1:2]:
                    del table[thinned]
