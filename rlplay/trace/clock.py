"""Which steps of its own trainer each update of a run is: "update 618 · step 1,237".

A trainer that takes several optimizer steps on one sampling, or that counts from 0, has another number for an update
than rlplay, and its logs and checkpoints are named after that number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Steps = tuple[int, int]
"""The trainer's numbers of an update's first and last optimizer step."""
Stored = tuple[Sequence[int], Sequence[float]]
"""Updates, ascending, and a number of each."""
FIRST, LAST = "trainer_steps/first", "trainer_steps/last"
"""The names of these numbers where a run file keeps them beside the metrics."""
_MOST = 2**53
"""From here on, a number of double precision is not every whole number."""


class Clock:
    """The trainer's steps of each update of the live branch, as far as they are on record, by ascending update."""

    def __init__(self) -> None:
        self._updates: list[int] = []
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self.differs = False
        """Whether some update has another number in its trainer: only then a screen shows both."""

    @classmethod
    def of(cls, firsts: Stored, lasts: Stored) -> Clock:
        """From stored first and last steps; what is no step is left out."""
        clock, ends = cls(), dict(zip(*lasts, strict=True))
        for update, first in zip(*firsts, strict=True):
            if 0 <= first <= (last := ends.get(update, -1)) < _MOST:
                clock.put(update, (int(first), int(last)))
        return clock

    def put(self, update: int, steps: Steps) -> None:
        """Take the steps of an update that comes after the others, or once more those of the last."""
        if self._updates and self._updates[-1] >= update:
            self.cut(update - 1)
        self._updates.append(update)
        self._firsts.append(steps[0])
        self._lasts.append(steps[1])
        self.differs = self.differs or steps != (update, update)

    def cut(self, last: int) -> None:
        """Forget the updates after `last`."""
        keep = bisect_left(self._updates, last + 1)
        for each in (self._updates, self._firsts, self._lasts):
            del each[keep:]
        whole = zip(self._updates, self._firsts, self._lasts, strict=True)
        self.differs = any(update != first or update != end for update, first, end in whole)

    def __bool__(self) -> bool:
        return bool(self._updates)

    def steps(self, update: int) -> Steps | None:
        """The trainer's steps of an update; None if they are not on record."""
        place = bisect_left(self._updates, update)
        if place == len(self._updates) or self._updates[place] != update:
            return None
        return self._firsts[place], self._lasts[place]

    def place(self, update: int) -> int:
        """The last step of an update, or of the one before it that has one; of those before them all, the step before.

        Raises IndexError if no step is on record.
        """
        at = bisect_right(self._updates, update) - 1
        return self._lasts[at] if at >= 0 else self._firsts[0] - 1

    def is_like(self, other: Clock) -> bool:
        """Whether the updates that both have are of the same steps."""
        shared = min(len(self._updates), len(other._updates))
        both = (self._updates, self._firsts, self._lasts), (other._updates, other._firsts, other._lasts)
        return all(one[:shared] == its[:shared] for one, its in zip(*both, strict=True))

    @property
    def last(self) -> int:
        """The newest step; 0 if none is on record."""
        return self._lasts[-1] if self._lasts else 0

    def aside(self, update: int) -> str:
        """The last step of an update, " · step 1,237"; "" if the trainer calls every update what rlplay does."""
        steps = self.steps(update) if self.differs else None
        return "" if steps is None else f" · step {steps[1]:,}"

    def steps_of(self, trainer: str, update: int) -> str:
        """All steps of an update, "TRL's steps 1,236–1,237"; "" as in `aside`. `trainer` is as in `Started.source`."""
        steps = self.steps(update) if self.differs else None
        if steps is None:
            return ""
        whose = f"{name}'s " if (name := trainer.partition(" ")[0]) else ""
        first, last = steps
        return f"{whose}step {last:,}" if first == last else f"{whose}steps {first:,}–{last:,}"

    def update_at(self, step: int) -> int | None:
        """The update that a trainer's step belongs to, the next one if it is between two; None after the last."""
        place = bisect_left(self._lasts, step)
        return self._updates[place] if place < len(self._updates) else None


def by_step(clocks: Sequence[Clock]) -> bool:
    """Whether runs are compared at equal steps: all have them on record, and their updates are of different ones."""
    return all(clocks) and not all(clock.is_like(clocks[0]) for clock in clocks)


def check_steps(steps: Steps | None) -> None:
    """Raises ValueError if these are no numbers of an update's first and last step."""
    if steps is not None and not 0 <= steps[0] <= steps[1] < _MOST:
        raise ValueError(f"trainer_steps are {steps[0]} to {steps[1]}, not two whole numbers in order")
