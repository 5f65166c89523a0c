"""The part of the driver that answers questions about the run; nothing of it changes the run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace

from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.judge import judge
from rlplay.engine.probability_history import recall
from rlplay.engine.probe import probe
from rlplay.engine.reach import check_reach, reach
from rlplay.engine.rehearse import Rehearsing
from rlplay.engine.state import State
from rlplay.engine.take_away import TakingAway
from rlplay.engine.teachers.course import teach_course
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.teach import teach
from rlplay.engine.try_code import try_code
from rlplay.engine.weights_asked import AnyWeights, about_weights
from rlplay.engine.what_if import what_if
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.questions import (
    AnyAnswer,
    AnyProbe,
    AnyQuestion,
    Imagined,
    Judge,
    Judged,
    Reach,
    Reached,
    Recall,
    TryCode,
    WhatIf,
)
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.runfile import RunWriter
from rlplay.trace.teachers import TakeAway, Teach, TeachCourse
from rlplay.trace.update import Phase

KEPT_FOR_QUESTIONS = 64 << 20
"""Bytes of a finished update's batch that stay at hand for questions while the next is sampled, at most."""


class Answering(TakingAway, Rehearsing):
    """What a question may need of the driver."""

    _writer: RunWriter
    _pairs: list[int]

    @property
    @abstractmethod
    def _latest(self) -> Settings: ...

    @property
    @abstractmethod
    def _labelling(self) -> bool: ...

    def answers(self, question: AnyQuestion, interrupted: Callable[[], bool]) -> Iterator[AnyAnswer]:
        """The answers to any question. Raises ValueError, one line, if it cannot be answered."""
        match question:
            case WhatIf(changes):
                yield self.what_if(changes)
            case Judge(pair):
                yield self.judge(pair)
            case TryCode():
                yield try_code(question, self._state)
            case Reach():
                yield from self._reach(question, interrupted)
            case TakeAway():
                yield from self._take_away(question, interrupted)
            case Rehearse():
                yield from self._rehearse(question, interrupted)
            case Teach():
                yield from teach(question, self._past(interrupted))
            case TeachCourse():
                yield from teach_course(question, self._past(interrupted))
            case _:
                yield from self.probe(question, interrupted)

    def waits(self, question: AnyQuestion) -> bool:
        """Whether a question goes back in the run, and so has to wait for the end of the update under way."""
        return isinstance(question, TakeAway | Rehearse) and not self._at_border

    def _past(self, interrupted: Callable[[], bool]) -> Past:
        """What a question about earlier updates reads; it changes nothing of the run."""
        self._last_end.close()
        return Past(
            self._state, self._plan, self._store, self._writer.path, self._done, self._settings_at, interrupted
        )  # fmt: skip

    def judge(self, pair: int) -> Judged:
        """What the models make of a pair's answers. Raises ValueError, one line, if the pair may get no label."""
        if self._state.batch is None or not (self._labelling and pair in self._pairs):
            raise ValueError(f"pair {pair} isn't awaiting a label")
        return judge(self._state, pair)

    def what_if(self, changes: SomeSettings) -> Imagined:
        """What changed settings would make of the newest completions with credit. Raises ValueError as the function."""
        return what_if(self._with_answers(), self._latest, changes, self._plan.seed)

    def _with_answers(self) -> State:
        """The state with the answers of the update under way, once they have credit, else of the last finished one.

        After an undo or a resume those are sampled once more; nothing of that is recorded, and it changes nothing.
        """
        batch = self._state.batch
        if batch is not None and (batch.advantages is not None or self._kept is None):
            return self._state
        update = self._done
        if self._kept is None and update and self._at_border and self._rewarded(update):
            with self._back_afterwards():
                self._go_to(update - 1)
                self._repeat(update)
                batch = self._state.batch
            self._state.batch, self._kept = batch, unless_large(batch)
            return self._state
        return replace(self._state, batch=self._kept)

    def probe(self, question: AnyProbe | AnyWeights, interrupted: Callable[[], bool]) -> Iterator[AnyAnswer]:
        """The answers to a question about a prefix, by the latest settings, or about the weights; see `probe.py`.

        Raises ValueError, one line, if it cannot be answered.
        """
        state = replace(self._state, settings=self._latest)
        if isinstance(question, AnyWeights):
            return about_weights(question, state, self._store, interrupted)
        if isinstance(question, Recall):
            return recall(question, state, self._store, interrupted)
        return probe(question, state, self._plan.seed, interrupted)

    def _reach(self, question: Reach, interrupted: Callable[[], bool]) -> Iterator[Reached]:
        """The newest update with other rewards; the run is then where it was. Raises ValueError as `check_reach`."""
        update, batch = self._done, check_reach(question, self._state.batch, self._done)

        def before() -> State:
            self._go_to(update - 1)
            return self._state

        def settings_of(phase: Phase) -> Settings:
            return self._settings_at((update, phase))

        with self._back_afterwards():
            yield from reach(question, batch, before, settings_of, self._plan.seed, interrupted)


def unless_large(batch: Batch | None) -> Batch | None:
    """The batch, unless it is too large to stay at hand while the next one is sampled."""
    return batch if batch is not None and batch.size <= KEPT_FOR_QUESTIONS else None
