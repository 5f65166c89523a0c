"""All updates of a run as rows of a table: their numbers, what was turned there, and what is still on disk of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import describe

SCORES = {"reward": "reward", "rewards/accuracies": "told apart", "mean_token_accuracy": "accuracy", "loss": "loss"}
"""What an update is judged by: the first of these that the run records, with the words for a narrow column."""
DISTANCES = {"kl": "KL to ref", "kl_old": "KL to old"}
"""How far the policy has gone: the first that the run records, with the words for a narrow column."""


@dataclass(frozen=True)
class Row:
    """One update, 0 being the start of the run; None stands for a number that was not computed."""

    number: int
    score: float | None = None
    held_out: float | None = None
    kl: float | None = None
    events: tuple[Mark, ...] = ()  # settings that were changed for it, and rewinds to it
    tokens: bool = False  # its answers were kept
    snapshot: bool = False  # the state after it is on disk


@dataclass(frozen=True)
class Timeline:
    """The updates from 0 to `reached`, and by which metrics their rows are judged."""

    history: History
    reached: int
    recorded: frozenset[int] = frozenset()
    snapshots: frozenset[int] = frozenset()

    @cached_property
    def score(self) -> str:
        """The metric that says how good an update is."""
        return next((name for name in SCORES if self.history.series(name)[0]), next(iter(SCORES)))

    @cached_property
    def kl(self) -> str:
        """The metric that says how far the policy has gone."""
        return next((name for name in DISTANCES if self.history.series(name)[0]), next(iter(DISTANCES)))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale for the score: zero and the extremes of the run."""
        values = [value for value in self._values(self.score).values() if math.isfinite(value)]
        return min([0.0, *values]), max([0.0, *values])

    @cached_property
    def rows(self) -> list[Row]:
        """One for each update."""
        scores, held_out, kl = (self._values(name) for name in (self.score, "eval_reward", self.kl))
        events: dict[int, list[Mark]] = {}
        for mark in self.history.marks:
            events.setdefault(mark.update, []).append(mark)
        return [
            Row(
                number,
                scores.get(number),
                held_out.get(number),
                kl.get(number),
                tuple(events.get(number, ())),
                number in self.recorded,
                number == 0 or number in self.snapshots,
            )
            for number in range(self.reached + 1)
        ]

    @property
    def coming(self) -> tuple[Mark, ...]:
        """What was changed for the updates after the last finished one."""
        return tuple(mark for mark in self.history.marks if mark.update > self.reached)

    def _values(self, name: str) -> dict[int, float]:
        return dict(zip(*self.history.series(name), strict=True))


def heading(name: str) -> str:
    """A metric as the head of a column."""
    row = describe(name)
    return name if row is None else row.title
