"""All updates of a run as rows of a table: numbers, changed settings, and what is on disk."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import describe

SCORES = {"reward": "reward", "rewards/accuracies": "accuracy", "mean_token_accuracy": "accuracy", "loss": "loss"}
"""Metrics for the score of an update, with short headings: the first that the run records is used."""
DISTANCES = {"kl": "KL to ref", "kl_old": "KL to old"}
"""Metrics for the distance of the policy, with short headings: the first that the run records is used."""


@dataclass(frozen=True)
class Row:
    """One update; 0 is the start of the run. None marks a number that was not computed."""

    number: int
    score: float | None = None
    held_out: float | None = None
    kl: float | None = None
    events: tuple[Mark, ...] = ()  # settings changed for it, and rewinds to it
    tokens: bool = False  # whether its answers were kept
    snapshot: bool = False  # whether the state after it is on disk


@dataclass(frozen=True)
class Timeline:
    """The updates from 0 to `reached`, and the metrics of their columns."""

    history: History
    reached: int
    recorded: frozenset[int] = frozenset()
    snapshots: frozenset[int] = frozenset()

    @cached_property
    def score(self) -> str:
        """The metric for the score."""
        return next((name for name in SCORES if self.history.series(name)[0]), next(iter(SCORES)))

    @cached_property
    def kl(self) -> str:
        """The metric for the distance."""
        return next((name for name in DISTANCES if self.history.series(name)[0]), next(iter(DISTANCES)))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale for the score: zero and the extremes of the run."""
        values = [value for value in self._values(self.score).values() if math.isfinite(value)]
        return min([0.0, *values]), max([0.0, *values])

    @cached_property
    def rows(self) -> list[Row]:
        """A row for each update."""
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
        """The events at updates after the last finished one."""
        return tuple(mark for mark in self.history.marks if mark.update > self.reached)

    def _values(self, name: str) -> dict[int, float]:
        return dict(zip(*self.history.series(name), strict=True))


def heading(name: str) -> str:
    """A metric's title as the heading of a column."""
    row = describe(name)
    return name if row is None else row.title
