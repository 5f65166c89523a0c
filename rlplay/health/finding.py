"""What a check says: a finding, or that all is well."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rlplay.algorithms.settings import Settings
from rlplay.health.counts import WinCount
from rlplay.health.digest import AnswerExample, Digest, TokenPlace
from rlplay.trace.history import History
from rlplay.trace.numbers import number

Problem = Literal[
    "not finite", "template", "mismatch", "no end", "temperature", "same reward", "inverted", "step too large",
    "length", "gamed", "repetition", "memorised", "entropy", "kl", "critic", "step too small", "truncated",
    "no signal", "flat",
]  # fmt: skip
"""The names of the problems, which never change."""
Points = list[tuple[int, float]]
"""The updates of a metric with its values, ascending."""
RECENT = 5
"""Updates that say how a run is now; with few answers each, more of them are needed."""


@dataclass(frozen=True)
class Finding:
    """A problem of a run: the numbers that show it, why it happens, what to change, where to look.

    `name` is stable, for programs; the texts are for people and name no keys. `settings` are those to change.
    """

    name: Problem
    title: str
    evidence: str
    cause: str
    change: str
    settings: tuple[str, ...] = ()
    place: TokenPlace | None = None
    examples: tuple[AnswerExample, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A run up to its update `last`, since the start of its stage: what the checks look at."""

    last: int
    first: int
    digests: Sequence[Digest]
    """Of the updates whose answers are known, ascending; not empty."""
    history: History
    settings: Settings
    ends: Mapping[int, str]
    """The tokens that end an answer, with their text; empty if the run does not say."""
    on_record: Container[str] = frozenset(Settings.__struct_fields__)
    """The names of the settings that the run states; the others have their defaults, which may not be the run's."""

    @property
    def now(self) -> Digest:
        """The newest digest."""
        return self.digests[-1]

    def recent(self, count: int) -> Sequence[Digest]:
        """The newest `count` digests."""
        return self.digests[-count:]

    def series(self, name: str) -> Points:
        """The points of a metric in these updates."""
        updates, values = self.history.series(name)
        return [(n, x) for n, x in zip(updates, values, strict=True) if self.first <= n <= self.last]

    def mean(self, name: str, count: int) -> float | None:
        """The mean of the newest `count` values of a metric; None without values."""
        values = [x for _, x in self.series(name)][-count:]
        return sum(values) / len(values) if values else None

    def pooled(self, kind: Literal["longer", "gold"], name: str, enough: int) -> WinCount:
        """The pairs of the newest updates: of `RECENT`, and of as many before them as it takes to have `enough`."""
        total = WinCount()
        for place, each in enumerate(reversed(self.digests)):
            if place >= RECENT and total.all >= enough:
                break
            pairs: dict[str, WinCount] = getattr(each, kind)
            total += pairs.get(name, WinCount())
        return total

    @cached_property
    def answers(self) -> int:
        """How many answers the digests are about."""
        return sum(each.answers for each in self.digests)

    @property
    def learning_rate(self) -> str:
        """Its name and number, "learning rate 0.0004"; the last one logged if the run states none, if any was."""
        stated = "learning_rate" in self.on_record
        rate = self.settings.learning_rate if stated else self.mean("learning_rate", 1)
        return "learning rate" if rate is None else f"learning rate {number(rate)}"


NOT_USED = "not used"
"""In place of a check's numbers, where the run has nothing that they could be of."""


@dataclass(frozen=True)
class Check:
    """One kind of problem. `explains` names the problems that are its consequences: these are left out beside it."""

    name: Problem
    title: str
    look: Callable[[Evidence], Finding | None]
    fine: Callable[[Evidence], str]
    """The numbers that show that there is no such problem; empty if there are too few."""
    explains: frozenset[Problem] = frozenset()
