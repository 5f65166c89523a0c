"""Every metric of a run over its updates: the data of the curves."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple

from rlplay.trace.clock import FIRST, LAST, Clock
from rlplay.trace.metrics import means_the_same
from rlplay.trace.numbers import compact
from rlplay.trace.records import AnyRecord, Changed, Evaluated, Finished, Logged, Rewound, Staged, Withheld
from rlplay.trace.settings_timeline import effective_from, part_of

Series = tuple[list[int], list[float]]


class Mark(NamedTuple):
    """An event between two updates: "epsilon 0.2 → 0.1", at the first update that it affects."""

    update: int
    text: str
    kind: Literal["changed", "back", "on"]  # a new setting or stage; a rewind to there; a resume


class _Line:
    """The points of one metric, by ascending update."""

    def __init__(self) -> None:
        self.updates = array("I")
        self.values = array("d")
        self.version = 0

    def put(self, update: int, value: float) -> None:
        self.version += 1
        place = bisect_left(self.updates, update)
        if place < len(self.updates) and self.updates[place] == update:  # evaluated again, after a resume
            self.values[place] = value
            return
        self.updates.insert(place, update)  # mostly the last; another file of the run may be behind
        self.values.insert(place, value)

    def cut(self, last: int) -> Series:
        """Drop the points after update `last` and return them."""
        self.version += 1
        keep = bisect_right(self.updates, last)
        dropped = self.updates[keep:].tolist(), self.values[keep:].tolist()
        del self.updates[keep:], self.values[keep:]
        return dropped


class History:
    """The metrics and marks of a run, held-out evaluations included.

    Only the live branch is in the series: a `Rewound` moves the updates after it to `abandoned`.
    """

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}
        self._abandoned: dict[str, list[Series]] = {}
        self._marks: list[tuple[int, Mark]] = []  # with the earliest update to which a rewind keeps it
        self._borders: set[int] = set()
        self.clock = Clock()
        """The steps of another trainer that the updates are."""
        self.withheld: dict[int, list[int]] = {}
        """The tokens whose credit is taken away, by update."""
        self.algorithms: dict[int, str] = {}
        """What each stage trains with, by its first update; the name of a stage that does not say it."""

    @classmethod
    def of(cls, points: Iterable[tuple[int, str, int, float | None]], marks: Iterable[AnyRecord]) -> History:
        """From stored (branch, name, update, value) rows, where branch 0 is the live one, and the live marks.

        None stands for NaN. Rows come by ascending update within a branch, and abandoned branches in the order in which
        they were abandoned.
        """
        history = cls()
        dead: dict[tuple[int, str], _Line] = {}
        lines = history._lines
        for branch, name, update, value in points:
            kept = lines.get(name) or lines.setdefault(name, _Line())
            line = kept if branch == 0 else dead.setdefault((branch, name), _Line())
            line.updates.append(update)
            line.values.append(math.nan if value is None else value)
            line.version += 1
        for (_, name), line in dead.items():
            history._give_up(name, (line.updates.tolist(), line.values.tolist()))
        firsts, lasts = (history.series(name) for name in (FIRST, LAST))
        history.clock = Clock.of(firsts, lasts)
        for name in (FIRST, LAST):
            lines.pop(name, None)
        for record in marks:
            history._mark(record)
        return history

    def add(self, record: AnyRecord) -> None:
        """Take any record; those without metrics or marks are ignored."""
        match record:
            case Finished() | Evaluated() | Logged():
                for name, value in record.metrics.items():
                    self._lines.setdefault(name, _Line()).put(record.update, value)
                if isinstance(record, Finished) and record.trainer_steps is not None:
                    self.clock.put(record.update, record.trainer_steps)
            case Rewound():
                self._cut(record.update)
                self._mark(record)
            case Changed() | Staged() | Withheld():
                self._mark(record)
            case _:
                pass

    def names(self) -> list[str]:
        """Every metric seen so far, in the order they first appeared."""
        return list(self._lines)

    def named(self, pattern: str) -> str:
        """The first metric whose name fits a pattern such as `rewards/*/mean`; the pattern itself if none does yet."""
        return next((name for name in self._lines if fnmatchcase(name, pattern)), pattern)

    @property
    def updates(self) -> list[int]:
        """The finished updates of the live branch, ascending; which metrics they have depends on the trainer."""
        of_training = (line.updates for name, line in self._lines.items() if not name.startswith("eval_"))
        return list(max(of_training, key=len, default=()))

    def series(self, name: str) -> Series:
        """Updates and values of one metric on the live branch; empty lists if there are none."""
        line = self._lines.get(name)
        return ([], []) if line is None else (line.updates.tolist(), line.values.tolist())

    def between(self, name: str, first: int, last: int) -> Series:
        """Updates and values of one metric from one update to another, both included."""
        line = self._lines.get(name)
        if line is None:
            return [], []
        part = slice(bisect_left(line.updates, first), bisect_right(line.updates, last))
        return line.updates[part].tolist(), line.values[part].tolist()

    def at(self, update: int) -> dict[str, float]:
        """Every metric of one update of the live branch, by name."""
        found = {}
        for name, line in self._lines.items():
            place = bisect_left(line.updates, update)
            if place < len(line.updates) and line.updates[place] == update:
                found[name] = line.values[place]
        return found

    def version(self, name: str) -> int:
        """A number that changes whenever the series of one metric does."""
        line = self._lines.get(name)
        return 0 if line is None else line.version

    def abandoned(self, name: str) -> list[Series]:
        """The parts of one metric's curve that rewinds discarded, oldest branch first."""
        return list(self._abandoned.get(name, ()))

    def extent(self, branches: int = 0) -> tuple[int, int]:
        """The first and the last update with any metric, over the live and the last `branches` abandoned branches.

        (0, 0) if there is none. A run that was evaluated before its first update, or rewound to there, begins at 0.
        """
        given_up = self.abandoned("num_tokens")[-branches:] if branches else []
        ends = [(line.updates[0], line.updates[-1]) for line in self._lines.values() if line.updates]
        ends += [(updates[0], updates[-1]) for updates, _ in given_up]
        ends += [(mark.update, mark.update) for mark in self.marks if mark.kind == "back"]
        return min((first for first, _ in ends), default=0), max((last for _, last in ends), default=0)

    def latest(self, name: str) -> float | None:
        """The newest value on the live branch, None if there is none."""
        line = self._lines.get(name)
        return line.values[-1] if line and line.values else None

    @property
    def marks(self) -> list[Mark]:
        """The events between updates on the live branch, in order."""
        return [mark for _, mark in self._marks]

    @property
    def stage_borders(self) -> list[int]:
        """The first updates of all stages but the first, ascending.

        A new stage trains something else on other data, so most metrics change their meaning there. The scenario fixes
        these updates, so a rewind does not change them.
        """
        return sorted(self._borders)

    def of_stage(self, name: str) -> Series:
        """The part of one metric's series that is the same quantity: since the start of the current stage."""
        updates, values = self.series(name)
        if means_the_same(name):
            return updates, values
        following = max(self.updates, default=0) + 1
        start = bisect_left(updates, max((border for border in self._borders if border <= following), default=0))
        return updates[start:], values[start:]

    @property
    def settled(self) -> bool:
        """Whether an update has finished since the last change of settings or stage, so that all its metrics exist."""
        changed = max((mark.update for mark in self.marks if mark.kind == "changed"), default=1)
        return max(self.updates, default=0) >= changed

    def _cut(self, last: int) -> None:
        for name, line in self._lines.items():
            dropped = line.cut(last)
            if dropped[0]:
                self._give_up(name, dropped)
        self.clock.cut(last)
        self._marks = [mark for mark in self._marks if mark[0] <= last]
        self.withheld = {update: tokens for update, tokens in self.withheld.items() if update <= last + 1}

    def _give_up(self, name: str, part: Series) -> None:
        """Discard a part of a curve; several single-step rewinds in a row discard one connected part."""
        parts = self._abandoned.setdefault(name, [])
        if parts and parts[-1][0][0] == part[0][-1] + 1:
            updates, values = parts.pop()
            part = part[0] + updates, part[1] + values
        parts.append(part)

    def _mark(self, record: AnyRecord) -> None:
        match record:
            case Changed():
                text = f"{record.name} {_short(record.previous)} → {_short(record.value)}"
                self._marks.append((part_of(record), Mark(effective_from(record), text, "changed")))
            case Staged():
                self.algorithms[record.update] = str(record.settings.get("algorithm") or record.name)
                if record.update <= 1:
                    return
                self._borders.add(record.update)
                self._marks.append((part_of(record), Mark(record.update, f"stage {record.name}", "changed")))
            case Withheld():
                self.withheld[record.update] = record.tokens
                text = f"{len(record.tokens)} {'token' if len(record.tokens) == 1 else 'tokens'} without credit"
                self._marks.append((record.update - 1, Mark(record.update, text, "changed")))
            case Rewound() if record.abandoned > record.update:
                self._marks.append((record.update, Mark(record.update, f"rewound from {record.abandoned}", "back")))
            case Rewound() if record.abandoned and not record.asked:  # else there was nothing to resume
                self._marks.append((record.update, Mark(record.update, f"resumed from {record.update}", "on")))
            case _:
                pass


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return ("off", "on")[value]
    return compact(value) if isinstance(value, float) else str(value)
