"""What some settings would make of the next updates: each is tried from the same state, and the run stays there."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings
from rlplay.engine.change_record import changes_of
from rlplay.engine.evaluate import Evaluating
from rlplay.engine.loop import Moment
from rlplay.engine.out_of_memory import release
from rlplay.engine.replays import Interrupted, Replays
from rlplay.engine.value_learning import explore
from rlplay.scenario.schema import Scenario
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import AnyRecord, Evaluated, Finished, Record
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from rlplay.trace.settings_timeline import Point, SettingsTimeline, part_of

_BEGUN_WITH = {*Scenario.__struct_fields__} - {*KNOBS}
"""What a run is begun with and keeps."""


class Rehearsing(Replays):
    """Answers `Rehearse`."""

    _timeline: SettingsTimeline
    _point: Point

    @property
    @abstractmethod
    def _latest(self) -> Settings: ...

    def _rehearse(self, question: Rehearse, interrupted: Callable[[], bool]) -> Iterator[Rehearsed]:
        """An answer after each update of each change, and a last one that is `done`.

        All begin as if the run had gone back to the end of update `since`: what was changed, labelled or withheld later
        does not count. Raises ValueError, one line, if nothing can be rehearsed from there.
        """
        self._check_border()
        if not 0 <= question.since <= self._done:
            raise ValueError(f"update {question.since} is not finished; the last one is {self._done}")
        if question.updates < 1:
            raise ValueError(f"a rehearsal takes 1 update or more; got {question.updates}")
        with suppress(Interrupted), self._back_afterwards():
            for index in range(len(question.changes)):
                with self._unrecorded(question.since):
                    yield from self._one(question, index, interrupted)
        yield Rehearsed(question.number, len(question.changes), done=True)

    @contextmanager
    def _unrecorded(self, since: int) -> Iterator[None]:
        """Within it the run knows only what it knew at the end of `since`, and what it learns is forgotten."""
        timeline, choices, withheld = self._timeline, self._state.choices, self._state.withheld
        known = [change for change in timeline.changes if part_of(change) <= since]
        self._aside = []
        self._timeline = SettingsTimeline(timeline.begun, known)
        self._state.choices = {place: choice for place, choice in choices.items() if place[0] <= since}
        self._state.withheld = {update: tokens for update, tokens in withheld.items() if update <= since + 1}
        try:
            yield
        finally:
            self._timeline, self._state.choices, self._state.withheld = timeline, choices, withheld

    def _one(self, question: Rehearse, index: int, interrupted: Callable[[], bool]) -> Iterator[Rehearsed]:
        """The updates with one of the changes; the last answer says why they ended, if they did.

        Raises Interrupted.
        """
        number, records = question.number, list[AnyRecord]()
        try:
            self._go_to(question.since, _Watched(question.since, interrupted))
            records += self._changed(question.changes[index])
            for update in range(question.since + 1, question.since + question.updates + 1):
                watched = _Watched(update, interrupted)
                self._repeat(update, watched)
                yield Rehearsed(number, index, update, records=records + watched.records)
                records, self._aside = self._aside or [], []  # a stage that begins with the next one
        except Interrupted:
            raise
        except Exception as error:
            release(error)
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            yield Rehearsed(number, index, self._point[0], refused=reason)

    def _changed(self, changes: SomeSettings) -> list[AnyRecord]:
        """Change settings from here on, as `Driver.set` does; the records of it. Raises ValueError as that."""
        if fixed := next((name for name in changes if name in _BEGUN_WITH), None):
            raise ValueError(f"{fixed} cannot change within a run; begin a new one with another {fixed}")
        records = changes_of(self._state, self._latest, changes, self._point)
        for record in records:
            self._timeline.add(record)
        self._state.settings = self._settings_at(self._point)
        explore(self._state)
        return list(records)


class _Watched:
    """The records of `update`, with the seconds that they took; raises Interrupted if something else is to be done."""

    def __init__(self, update: int, interrupted: Callable[[], bool]) -> None:
        self.records: list[AnyRecord] = []
        self._update, self._interrupted = update, interrupted
        self._since = time.monotonic()
        self._own = self._evaluation = 0.0

    def __call__(self, moment: Moment) -> None:
        now = time.monotonic()
        if isinstance(moment, Evaluating | Evaluated):
            self._evaluation += now - self._since
        else:
            self._own += now - self._since
        self._since = now
        if isinstance(moment, Record) and moment.update == self._update:
            self.records.append(self._timed(moment))
        if self._interrupted():
            raise Interrupted

    def _timed(self, moment: AnyRecord) -> AnyRecord:
        if isinstance(moment, Finished):
            return msgspec.structs.replace(moment, seconds=self._own)
        return msgspec.structs.replace(moment, seconds=self._evaluation) if isinstance(moment, Evaluated) else moment
