"""What a check says: a finding, or that all is well."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from rlplay.algorithms.settings import Settings
from rlplay.health.counts import WinCount
from rlplay.health.digest import AnswerExample, Digest, TokenPlace
from rlplay.health.run_kind import ALL, RunKind, kind_of
from rlplay.trace.evaluations import LearningCourses
from rlplay.trace.history import History
from rlplay.trace.numbers import number

Problem = Literal[
    "not finite", "template", "mismatch", "no end", "temperature", "same reward", "inverted", "step too large",
    "length", "gamed", "repetition", "memorised", "entropy", "kl", "critic", "step too small", "truncated",
    "no signal", "flat", "clipped", "no gradient", "rounding", "few weights", "sampler", "left out", "spike",
    "reference", "negative kl", "held", "cancelling", "tiny spread", "collapse", "entropy rises", "same answers",
    "swapped", "one length", "lopsided", "displaced", "no preference", "no labels", "same teacher", "overfit",
    "leaked", "one prompt", "saturated", "given away",
    "others' tokens", "end untrained", "turns", "two prices", "masked", "drowned",
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
    """A run up to its update `last`, since the start of its stage: what the checks look at.

    A run of which only numbers were logged has no digests. A check that reads them says so in its `needs`, and is not
    asked without them.
    """

    last: int
    first: int
    digests: Sequence[Digest]
    """Of the updates whose answers are known, ascending."""
    history: History
    settings: Settings
    ends: Mapping[int, str]
    """The tokens that end an answer, with their text; empty if the run does not say."""
    on_record: Container[str] = frozenset(Settings.__struct_fields__)
    """The names of the settings that the run states; the others have their defaults, which may not be the run's."""
    source: str = ""
    """The trainer that made the run, such as "TRL 1.16.0 GRPOTrainer"; empty: rlplay."""
    held_out: LearningCourses | None = None
    """The held-out prompts with their rewards at each evaluation, as far as they are on record."""
    made_before: int = 0
    """Updates that another trainer made before the run began at its checkpoint: of their course it has no weights."""

    @property
    def now(self) -> Digest:
        """The newest digest. IndexError without any."""
        return self.digests[-1]

    @property
    def newest(self) -> Digest | None:
        """The newest digest; None without any."""
        return self.digests[-1] if self.digests else None

    @property
    def metrics_only(self) -> bool:
        """Whether no answer is on record, only numbers of whole updates."""
        return not self.digests

    @cached_property
    def kind(self) -> RunKind:
        """What the run learns from: by its settings, else by its trainer's name, else by the names of its metrics."""
        return kind_of(self.settings, self.on_record, self.source, self.history.names())

    @property
    def finished(self) -> bool:
        """Whether the newest update has ended."""
        return self.metrics_only or self.now.finished

    def place(self, name: str) -> TokenPlace | None:
        """A place of the newest update by its name there; None without one."""
        return None if self.newest is None else self.newest.places.get(name)

    @property
    def examples(self) -> tuple[AnswerExample, ...]:
        """Answers of the newest update."""
        return () if self.newest is None else self.newest.examples

    @property
    def example(self) -> TokenPlace | None:
        """The place of the first of `examples`."""
        return self.examples[0].place if self.examples else None

    @property
    def groups(self) -> int:
        """Groups of an update; 1 if nothing says how many."""
        if self.newest is not None:
            return self.newest.groups
        return self.settings.num_prompts if self.stated("num_prompts") else 1

    @property
    def batch(self) -> int:
        """Answers of an update; the fewest that there can be if nothing says how many."""
        if self.newest is not None:
            return self.newest.answers
        return self.groups * (self.settings.num_generations if self.stated("num_generations") else 1)

    def stated(self, name: str) -> bool:
        """Whether the run states this setting; else its value here is only rlplay's default."""
        return name in self.on_record

    def recent(self, count: int) -> Sequence[Digest]:
        """The newest `count` digests."""
        return self.digests[-count:]

    def series(self, name: str) -> Points:
        """The points of a metric in these updates."""
        if name not in self._read:
            updates, values = self.history.between(name, self.first, self.last)
            points = list(zip(updates, values, strict=True))
            whole = math.isfinite(sum(values))  # then each of them is a number
            self._read[name] = points, points if whole else [(n, x) for n, x in points if math.isfinite(x)]
        return self._read[name][0]

    def known(self, name: str) -> Points:
        """The points of a metric in these updates that are numbers."""
        self.series(name)
        return self._read[name][1]

    @cached_property
    def _read(self) -> dict[str, tuple[Points, Points]]:
        """Both by the metric's name: many checks ask for the same, and a run may have thousands of updates."""
        return {}

    @cached_property
    def memo(self) -> dict[str, Any]:
        """What several checks ask for and is not read in a moment, by the name of what computes it."""
        return {}

    def mean(self, name: str, count: int) -> float | None:
        """The mean of the newest `count` values of a metric; None without values."""
        values = [x for _, x in self.series(name)[-count:]]
        return sum(values) / len(values) if values else None

    def pooled(self, kind: Literal["longer", "gold", "scores"], name: str, enough: int) -> WinCount:
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
        return "learning rate" if rate is None else f"learning rate {number(rate, noise=0)}"


@dataclass(frozen=True)
class Need:
    """What a check cannot do without: its `name`, whether a run has it, and how to `record` it."""

    name: str
    there: Callable[[Evidence], bool]
    record: str


class NoTick(str):
    """The reason why a check without a finding is no ✓: a run has none of the thing, or the data cannot tell."""

    __slots__ = ()


NOT_USED = NoTick("not used")
"""The reason where the run has nothing that the check could be about."""


@dataclass(frozen=True)
class Check:
    """One kind of problem. `explains` names the problems that are its consequences: these are left out beside it.

    `look` and `fine` are asked only of runs of these `kinds` that have all that it `needs`.
    """

    name: Problem
    title: str
    look: Callable[[Evidence], Finding | None]
    fine: Callable[[Evidence], str]
    """The claim of a ✓: what was compared, with how much data, and the numbers that show that there is no such problem.

    A `NoTick`, or "" for "not enough data", if the check would not have seen the problem.
    """
    explains: frozenset[Problem] = frozenset()
    kinds: frozenset[RunKind] = ALL
    needs: tuple[Need, ...] = ()
    enough: str = ""
    """What data is enough for a ✓, "20 updates with a reward": "needs …" is shown where `fine` returns ""."""


@dataclass(frozen=True)
class Verdict:
    """What is said of a check that found nothing: a ✓ with its numbers, or a – with its reason and what to record."""

    title: str
    text: str
    ticked: bool
    record: str = ""
