"""Curves as a run without answers: an update for each step of the trainer that has numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rlplay.algorithms.settings import ANY_LOSS
from rlplay.foreign.assemble import finished
from rlplay.foreign.curve_files.names import is_held_out, known_as, tells_of_a_step
from rlplay.foreign.curve_files.rows import CurveLog, Scalars, StartedAgainError
from rlplay.foreign.foreign_run import ForeignRunError, beginning
from rlplay.record.format import Ended
from rlplay.trace.records import AnyRecord, Evaluated, Rewound, Started

_Part = tuple[int, bool]
"""The numbers of an update: those of training, or those of held-out prompts."""

MOST_NAMES, MOST_NUMBERS = 5_000, 20_000_000
"""Metrics and numbers of a run that are read: more would fill the memory."""
_OF_SAMPLING = ("temperature", "top_p", "top_k")
"""Options that a model's own configuration has, too, which stands among those of a trainer that does not sample."""


class CurveRun:
    """The run of a file with curves. Each update has the number of the trainer's step, from 1."""

    def __init__(self, log: CurveLog) -> None:
        self._log, self.path = log, log.path
        self._known: dict[int, Scalars] = {}
        self._newest: dict[str, int] = {}
        """The last update of each metric."""
        self._count, self._numbers, self._skip = 0, 0, 0  # rows; numbers; rows that are records already
        self._first: int | None = None
        """The trainer's step that is update 1: 0, or 1 where it counts so."""
        self._last = 0
        """The last update that had become a record when the run was read before."""

    def started(self) -> Started:
        """What the file says of the run beside its numbers."""
        about = self._log.about()
        options = about.pop("settings", {})
        names = ANY_LOSS if "num_generations" in options else set(ANY_LOSS) - set(_OF_SAMPLING)
        settings = {name: options[name] for name in names if name in options}
        title = f"{self._log.source} · {about.pop('title', '') or self.path.stem}"
        return beginning(self._log.source, title=title, settings=settings, stage="curve", **about)

    def place(self) -> dict[str, Any]:
        """How many rows became records, and which step is the first update."""
        return {"rows": self._count, "first": self._first, "last": max(self._known, default=0)}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after these rows; they are read again, for what comes late belongs to them."""
        self._skip, self._first, self._last = int(place.get("rows", 0)), place.get("first"), int(place.get("last", 0))

    def fresh(self) -> list[AnyRecord]:
        """The records of the rows that came since the last call."""
        try:
            rows = self._log.fresh()
        except StartedAgainError:
            return [*self._forget(), *self.fresh()]
        except OSError as error:
            raise ForeignRunError(f"{self.path} cannot be read ({error.strerror or error})") from None
        found: list[AnyRecord] = []
        changed: dict[_Part, None] = {}
        for row in rows:
            scalars = {name: value for logged, value in row.scalars.items() if (name := known_as(logged))}
            number = self._number(row.step, scalars)
            if self._log.goes_back and any(self._newest.get(name, 0) > number for name in scalars):
                found += self._records(changed)
                changed = {}
                back = self._go_back_before(number)
                found += [back] * (self._count >= self._skip)
            fresh = self._take(number, scalars)
            if self._count > self._skip:
                changed |= fresh
        if self._count < self._skip:  # another run is in the place of the one that was read before
            self._skip = 0
            changed = {(number, held): None for number in self._known for held in (False, True)}
            found = [Rewound(update=0, abandoned=self._last)]
        return [*found, *self._records(changed)]

    def _forget(self) -> list[AnyRecord]:
        last = max(self._known, default=0)
        self._known, self._newest, self._count, self._skip, self._first = {}, {}, 0, 0, None
        return [Rewound(update=0, abandoned=last)] if last else []

    def _number(self, step: int, scalars: Scalars) -> int:
        """The update of a step."""
        if self._first is None and any(map(tells_of_a_step, scalars)):
            self._first = min(step, 1)
        return step + (self._first == 0)

    def _take(self, number: int, scalars: Scalars) -> dict[_Part, None]:
        """Add the numbers of a row to its update; the parts of the update that they change."""
        self._count += 1
        self._numbers += len(scalars)
        self._newest |= dict.fromkeys(scalars, number)
        if len(self._newest) > MOST_NAMES or self._numbers > MOST_NUMBERS:
            most = f"{MOST_NAMES} metrics" if len(self._newest) > MOST_NAMES else f"{MOST_NUMBERS} numbers"
            raise ForeignRunError(f"{self.path} has more than {most}, too many to read")
        self._known.setdefault(number, {}).update(scalars)
        return {(number, is_held_out(name)): None for name in scalars}

    def _go_back_before(self, number: int) -> Rewound:
        """Forget an update and all later ones: training went back to the one before."""
        last = max(self._known)
        self._known = {known: scalars for known, scalars in self._known.items() if known < number}
        self._newest = {name: min(newest, number - 1) for name, newest in self._newest.items()}
        return Rewound(update=max(self._known, default=0), abandoned=last)

    def _records(self, parts: Mapping[_Part, None]) -> Iterator[AnyRecord]:
        for number, held_out in sorted(parts):
            own = {name: value for name, value in self._known[number].items() if is_held_out(name) == held_out}
            if own and held_out:
                yield Evaluated(
                    update=number, metrics=own, prompts=[], completions=[], rewards=np.zeros(0), seconds=0.0
                )
            elif own and number:  # times before the first update belong to none
                step = number - (self._first == 0)
                ended = Ended(
                    update=number, metrics=own, seconds=_seconds(own.get("step_time")), trainer_steps=(step, step)
                )
                yield finished(ended)


def _seconds(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) and value > 0 else 0.0
