"""Curves as a run without answers: an update for each step of the trainer that has numbers."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.algorithms.settings import ANY_LOSS
from rlplay.foreign.assemble import finished
from rlplay.foreign.curve_files.names import is_held_out, known_as, tells_of_a_step
from rlplay.foreign.curve_files.rows import CurveLog, Scalars, read_rows
from rlplay.foreign.foreign_run import ForeignRunError, beginning
from rlplay.record.format import Ended
from rlplay.trace.history import History
from rlplay.trace.records import AnyRecord, Evaluated, Rewound, Started

_Part = tuple[int, bool]
"""The numbers of an update: those of training, or those of held-out prompts."""

MOST_NAMES, MOST_NUMBERS = 5_000, 20_000_000
"""Metrics and numbers of a run that are read: more would fill the memory."""
_OF_SAMPLING = ("temperature", "top_p", "top_k")
"""Options that a model's own configuration has, too, which stands among those of a trainer that does not sample."""


@dataclass
class _Curves:
    """The numbers of a run as far as they are known."""

    steps: list[int] = field(default_factory=list)
    """The trainer's step of each update, ascending; the first is update 1."""
    numbers: dict[int, Scalars] = field(default_factory=dict)
    """By update; 0 has those from before the first one."""

    @classmethod
    def of(cls, history: History) -> _Curves:
        """Those that a run file holds."""
        found = cls()
        for name in history.names():
            for update, value in zip(*history.series(name), strict=True):
                found.numbers.setdefault(update, {})[name] = value
        steps = [history.clock.steps(update) for update in range(1, max(found.numbers, default=0) + 1)]
        found.steps = [-1 if each is None else each[1] for each in steps]
        return found

    def trained(self, update: int) -> int:
        """The last update up to `update` that has numbers of training; 0 if none has."""
        return next((n for n in range(update, 0, -1) if not all(map(is_held_out, self.numbers.get(n, ())))), 0)


class CurveRun:
    """The run of a file with curves. The updates are the steps that have numbers, counted from 1."""

    def __init__(self, log: CurveLog) -> None:
        self._log, self.path = log, log.path
        self._curves = _Curves()
        self._newest: dict[str, int] = {}
        """The last step of each metric."""
        self._count = 0  # numbers
        self._stored: _Curves | None = None
        """What the run file holds, where that is not what was read here."""

    def started(self) -> Started:
        """What the file says of the run beside its numbers."""
        about = self._log.about()
        options = about.pop("settings", {})
        names = ANY_LOSS if "num_generations" in options else set(ANY_LOSS) - set(_OF_SAMPLING)
        settings = {name: options[name] for name in names if name in options}
        title = f"{self._log.source} · {about.pop('title', '') or self.path.stem}"
        return beginning(self._log.source, title=title, settings=settings, stage="curve", **about)

    def place(self) -> dict[str, Any]:
        """Nothing: the file is read anew, and `recall` says what became of it before."""
        return {}

    def resume(self, _place: Mapping[str, Any]) -> None:
        """Nothing, for the same reason."""

    def recall(self, history: History) -> None:
        """Only what a run file with this history lacks is to become a record."""
        stored = _Curves.of(history)
        if stored.numbers:
            self._stored = stored

    def fresh(self) -> list[AnyRecord]:
        """The records of the rows that came since the last call."""
        rows = read_rows(self._log, self._forget)
        found: list[AnyRecord] = []
        changed: dict[_Part, None] = {}
        for step, logged in rows:
            scalars = {known: value for name, value in logged.items() if (known := known_as(name))}
            if self._log.goes_back and any(self._newest.get(name, 0) > step for name in scalars):
                found += self._records(changed)
                changed = {}
                found.append(self._go_back_before(step))
            changed |= self._take(step, scalars)
        if self._stored is None:
            return [*found, *self._records(changed)]
        stored, self._stored = self._stored, None
        return list(self._lacking(stored))

    def _forget(self) -> None:
        """All that was read is void; the run file holds it."""
        self._stored = self._stored or self._curves
        self._curves, self._newest, self._count = _Curves(), {}, 0

    def _take(self, step: int, scalars: Scalars) -> dict[_Part, None]:
        """Add the numbers of a row to its update; the parts of the update that they change."""
        self._count += len(scalars)
        self._newest |= dict.fromkeys(scalars, step)
        if len(self._newest) > MOST_NAMES or self._count > MOST_NUMBERS:
            most = f"{MOST_NAMES} metrics" if len(self._newest) > MOST_NAMES else f"{MOST_NUMBERS} numbers"
            raise ForeignRunError(f"{self.path} has more than {most}, too many to read")
        steps = self._curves.steps
        place = bisect_left(steps, step)
        number, late = place + 1, place < len(steps) and steps[place] != step
        if place == len(steps):
            if not steps and step == 0 and not any(map(tells_of_a_step, scalars)):
                number = 0
            else:
                steps.append(step)
        there = self._curves.numbers.setdefault(number, {})
        for name, value in scalars.items():
            if not late or name not in there:  # the number of a step between two belongs to the later one
                there[name] = value
        return {(number, is_held_out(name)): None for name in scalars}

    def _go_back_before(self, step: int) -> Rewound:
        """Forget a step and all later ones: training went back to the one before."""
        curves, last = self._curves, len(self._curves.steps)
        kept = curves.trained(bisect_left(curves.steps, step))
        del curves.steps[kept:]
        curves.numbers = {number: scalars for number, scalars in curves.numbers.items() if number <= kept}
        self._newest = {name: min(newest, step - 1) for name, newest in self._newest.items()}
        return Rewound(update=kept, abandoned=last)

    def _lacking(self, stored: _Curves) -> Iterator[AnyRecord]:
        """The records that make of what the run file holds what the file says now."""
        curves = self._curves
        pairs = enumerate(zip(stored.steps, curves.steps, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), min(len(stored.steps), len(curves.steps)))
        if len(stored.steps) > same:  # another run, or one that went back
            same = curves.trained(same)
            yield Rewound(update=same, abandoned=len(stored.steps))
        parts: dict[_Part, None] = {}
        for number, scalars in curves.numbers.items():
            there = stored.numbers.get(number, {}) if number <= same else {}
            for name, value in scalars.items():
                if name not in there or repr(there[name]) != repr(value):  # NaN is not equal to itself
                    parts[number, is_held_out(name)] = None
        yield from self._records(parts)

    def _records(self, parts: Iterable[_Part]) -> Iterator[AnyRecord]:
        for number, held_out in sorted(parts):
            numbers = self._curves.numbers[number]
            own = {name: value for name, value in numbers.items() if is_held_out(name) == held_out}
            if own and held_out:
                nobody = np.zeros(0)
                yield Evaluated(update=number, metrics=own, prompts=[], completions=[], rewards=nobody, seconds=0.0)
            elif own and number:  # times before the first update belong to none
                step, seconds = self._curves.steps[number - 1], _seconds(own.get("step_time"))
                yield finished(Ended(update=number, metrics=own, seconds=seconds, trainer_steps=(step, step)))


def _seconds(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) and value > 0 else 0.0
