"""All updates of a run as rows of a table: numbers, changed settings, and what is on disk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from rlplay.trace.history import History, Mark
from rlplay.trace.metrics import heading
from rlplay.ui.format.shown_text import within

SCORES = {"reward": "reward", "rewards/accuracies": "accuracy", "mean_token_accuracy": "accuracy", "loss": "loss"}
"""Metrics for the score of an update, with short headings: the first that the run records is used."""
USUAL: tuple[tuple[str, ...], ...] = (("kl", "kl_old"),)
"""What the further columns show unless the curves begin with other metrics."""
_LAST = ("completions/distinct", "grad_norm", "loss")
"""What the columns show where the curves' metrics leave room."""
_SHORT = {"kl": "KL to ref", "kl_old": "KL to old", "reward_std": "reward std", "kl_old_exact": "KL of step"}


@dataclass(frozen=True)
class UpdateRow:
    """One update; 0 is the start of the run. None marks a number that was not computed."""

    number: int
    score: float | None = None
    held_out: float | None = None
    further: tuple[float | None, ...] = ()  # of the further columns
    events: tuple[Mark, ...] = ()  # settings changed for it, and rewinds to it
    tokens: bool = False  # whether its answers were kept
    snapshot: bool = False  # whether the state after it is on disk


@dataclass(frozen=True)
class UpdateTable:
    """The updates from 0 to `reached`, and the metrics of their columns."""

    history: History
    reached: int
    recorded: frozenset[int] = frozenset()
    snapshots: frozenset[int] = frozenset()
    views: Sequence[Sequence[str]] = USUAL  # the metrics of each curve, the most important first

    @cached_property
    def score(self) -> str:
        """The metric for the score."""
        return next((name for name in SCORES if self.history.series(name)[0]), next(iter(SCORES)))

    @cached_property
    def evaluated(self) -> bool:
        """Whether there is a score on held-out prompts, or no update yet that shows whether there will be."""
        return bool(self.history.series("eval_reward")[0]) or not self.history.updates

    @cached_property
    def columns(self) -> list[str]:
        """The metrics of the further columns: the first that the run records of each curve, the second, then others.

        Those that were 0 at every update come last. A largest ratio that is always 1 says only that each batch had one
        optimizer step, and is left out.
        """
        shown = None, self.score, "eval_reward"
        ranked = dict.fromkeys([*(name for rank in zip_longest(*self.views) for name in rank), *_LAST])
        names = [name for name in ranked if name not in shown and self.history.series(name)[0]]
        names = [name for name in names if name != "ratio_max" or any(x != 1 for x in self.history.series(name)[1])]
        return sorted(names, key=lambda name: not any(self.history.series(name)[1]))

    @cached_property
    def limits(self) -> tuple[float, float]:
        """The ends of the scale for the score: zero and the extremes of the run."""
        values = [value for value in self._values(self.score).values() if math.isfinite(value)]
        return min([0.0, *values]), max([0.0, *values])

    @cached_property
    def rows(self) -> list[UpdateRow]:
        """A row for each update."""
        scores, held_out, *further = (self._values(name) for name in (self.score, "eval_reward", *self.columns))
        events: dict[int, list[Mark]] = {}
        for mark in self.history.marks:
            events.setdefault(mark.update, []).append(mark)
        return [
            UpdateRow(
                number,
                scores.get(number),
                held_out.get(number),
                tuple(column.get(number) for column in further),
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


def short_heading(name: str) -> str:
    """The heading in the timeline: "KL to ref", "gold score", "product_calls"."""
    if name.startswith("rewards/") and name.endswith("/mean"):
        return name.removeprefix("rewards/").removesuffix("/mean")
    return _SHORT.get(name) or within(heading(name))
