"""What the records of a run add up to: the one place that takes them in order, and that goes back with the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlplay.trace.beliefs import Beliefs
from rlplay.trace.evaluations import Evaluations
from rlplay.trace.history import History
from rlplay.trace.records import AnyRecord, Rewound, Sampled, Started
from rlplay.trace.runfile import RunReader
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update

KEPT = 12
"""Updates kept in memory; older ones are read from the run file."""


class Run:
    """The live branch of a run; of the branches that it has given up, only their curves.

    What others gather about its updates is in a table `by_update`, so that going back reaches that, too.
    """

    def __init__(
        self, load: Callable[[int], Update | None] = lambda _: None, *, kept: int = KEPT, candidates: bool = True
    ) -> None:
        """`load` reads an update that is not among the `kept` newest; None if it is not there.

        Without `candidates`, `beliefs` stay empty: they are large.
        """
        self.started: Started | None = None
        self.step_word = "token"
        """What the policy samples, "move" in a world: the scenario says it, no record does."""
        self.rewinds = 0
        """How often the run went back."""
        self._tables: list[dict[int, Any]] = []
        self._load, self._most, self._candidates = load, kept, candidates
        self.history = History()
        self.timeline = SettingsTimeline({})
        self.beliefs = Beliefs(self.by_update)
        self.evaluations = Evaluations(self.by_update)
        self.updates: dict[int, Update] = self.by_update()
        self.newest: Update | None = None  # as far as its records have come

    @classmethod
    def recorded(cls, reader: RunReader) -> Run:
        """What a run file holds by now: its numbers and settings at once, its updates when they are asked for."""
        run = cls(reader.load)
        run.add(reader.started)
        run.restore(reader.history(), reader.timeline())
        return run

    def by_update(self) -> dict[int, Any]:
        """A new table about this run's updates, by number: it loses those that are undone."""
        self._tables.append({})
        return self._tables[-1]

    @property
    def finished(self) -> int:
        """The last finished update; 0 before the first."""
        return max(self.history.updates, default=0)

    @property
    def ended(self) -> Update | None:
        """The last update that has ended, which claims are about; the current one if none has."""
        newest = self.newest
        if newest is None or newest.finished is not None or newest.number < 2:
            return newest
        return self.find(newest.number - 1) or newest

    def steps_of(self, number: int) -> str:
        """Its trainer's steps of an update, "TRL's steps 1,236–1,237"; "" where they have the same numbers."""
        return self.history.clock.steps_of("" if self.started is None else self.started.source, number)

    def find(self, number: int) -> Update | None:
        """Update `number`, from memory or as it is loaded; None if its detail was not kept."""
        found = self.updates.get(number) or self._load(number)
        if found is not None:
            found.step_word = self.step_word
        return found

    def add(self, record: AnyRecord) -> None:
        """Take the next record of the run."""
        self.history.add(record)
        self.timeline.add(record)
        self.evaluations.add(record)
        if self._candidates:
            self.beliefs.add(record)
        match record:
            case Started():
                self.started = record
            case Rewound():
                self.go_back(record.update)
                self.newest = self._keep(self.find(record.update)) if record.update else Update(0)
            case Sampled() if record.update > 0:
                self.newest = self._keep(self._begun(record.update))
            case _:
                pass
        if (update := self.updates.get(record.update)) is not None:
            update.add(record)

    def restore(self, history: History, timeline: SettingsTimeline, back_to: int | None = None) -> None:
        """Take the numbers and settings of a run file, which went back to the end of `back_to` since the last time."""
        if back_to is not None:
            self.go_back(back_to)
        self.history, self.timeline = history, timeline
        self.beliefs.stale = self.evaluations.stale = True

    def go_back(self, number: int) -> None:
        """Forget the updates after `number`: the run is back at its end."""
        self.rewinds += 1
        for table in self._tables:
            for later in [each for each in table if each > number]:
                del table[later]

    def _begun(self, number: int) -> Update:
        """An update that is being sampled: a new one, or the same once more."""
        known = self.updates.get(number)
        if known is None or (known.sampled is not None and known.sampled.done):
            known = Update(number, self.step_word)
            known.withheld = self.history.withheld.get(number, [])
        return known

    def _keep(self, update: Update | None) -> Update | None:
        """Keep an update as the newest, and no more than so many."""
        if update is not None:
            self.updates[update.number] = update
            while len(self.updates) > self._most:
                del self.updates[next(iter(self.updates))]
        return update
