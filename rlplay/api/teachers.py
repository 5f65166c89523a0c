"""Who taught a token what it does: the engine's answer as arrays, from a run in training or a recorded one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rlplay.api.recorded import with_tokens
from rlplay.engine.driver import Driver
from rlplay.trace.answers import per_answer
from rlplay.trace.chosen_answers import tokens_of as _places_of
from rlplay.trace.questions import Peek, Peeked, Prefix
from rlplay.trace.records import Array, Evaluated
from rlplay.trace.runfile import RunReader
from rlplay.trace.targets import whole_text_target
from rlplay.trace.teachers import AnyTeaching, TakeAway, TakenAway, Target, Taught, TaughtCourse, Teach, TeachCourse
from rlplay.trace.teachers_by_answer import TeacherGroup, teachers_by_answer
from rlplay.trace.update import Update

A = TypeVar("A", Taught, TaughtCourse, TakenAway, Peeked)


class Asker:
    """Puts questions to an engine, and raises ValueError, one line, where it refuses."""

    def __init__(self, engine: Driver, interrupted: Callable[[], bool] = lambda: False) -> None:
        self._engine, self._interrupted = engine, interrupted

    def answer(self, question: AnyTeaching | Peek, kind: type[A]) -> A:
        """The last answer to a question."""
        *_, last = self._engine.answers(question, self._interrupted)
        assert isinstance(last, kind)
        if last.refused:
            raise ValueError(last.refused)
        return last

    def course(self, target: Target) -> TaughtCourse:
        """How far each update of the run moved a target."""
        return self.answer(TeachCourse(target), TaughtCourse)


@dataclass(frozen=True, eq=False)
class Teachers:
    """What moved a token, a candidate or a whole answer in `update`, in nats of its log-probability.

    `shares`, `batch`, `earlier` and `rest` are of first order and add up to `predicted`; `measured` is what happened.
    `without` is a measurement too.
    """

    taught: Taught
    of: Update
    """The update whose tokens have shares."""
    completion: int | None
    """The answer of `update` that the target is from, counted from 0; None: no answer has it."""
    asker: Asker

    @property
    def update(self) -> int:
        """The update that moved the target."""
        return self.taught.update

    @property
    def by(self) -> int:
        """The update whose tokens have shares: the same, or an earlier one, through the optimizer's momentum."""
        return self.taught.by

    @property
    def shares(self) -> Array:
        """What each of the T tokens of update `by` added, float32 [T], in the order of `run.tokens(by)`."""
        return self.taught.shares

    @property
    def by_answer(self) -> Array:
        """The sum of the shares of each of the N answers of update `by`, float64 [N]."""
        assert self.of.sampled is not None
        return per_answer(self.of.sampled, self.shares.astype(np.float64))

    @property
    def before(self) -> float:
        """The log-probability before the update."""
        return self.taught.before

    @property
    def after(self) -> float:
        """The log-probability after the update."""
        return self.taught.after

    @property
    def batch(self) -> float:
        """The sum of the shares of the tokens of `update`."""
        return self.taught.batch

    @property
    def earlier(self) -> float:
        """What earlier updates added, through the optimizer's momentum."""
        return self.taught.earlier

    @property
    def rest(self) -> dict[str, float]:
        """What no token added, by its name: weight decay, entropy bonus and others."""
        return self.taught.rest

    @property
    def predicted(self) -> float:
        """The sum of all of these."""
        return self.taught.predicted

    @property
    def measured(self) -> float:
        """How far the log-probability moved."""
        return self.taught.measured

    @property
    def groups(self) -> list[TeacherGroup]:
        """The same shares, by answer: the same answer, the same prompt, other prompts, earlier updates."""
        own = self.completion if self.by == self.update else None
        return teachers_by_answer(self.taught, self.of, own)

    def without(self, answers: Sequence[int]) -> float:
        """How far the log-probability would have moved, had these answers of `update`, from 0, had no credit.

        The update is taken once more, all else the same. This is no sum of shares, because Adam divides by the size of
        the gradient that is left. Raises ValueError, one line, if there is no such answer or the engine refuses.
        """
        taken = self.take_away(answers)
        return taken.without - taken.before

    def take_away(self, answers: Sequence[int]) -> TakenAway:
        """The measurement of `without` in full."""
        return self.asker.answer(TakeAway(self.taught.target, self.update, tokens_of(self._own(), answers)), TakenAway)

    def _own(self) -> Update:
        if self.by != self.update:
            raise ValueError(f"only answers of update {self.update} can be taken away; leave out by={self.by}")
        return self.of


def find_teachers(
    asker: Asker, reader: RunReader, update: Update, target: Target, answer: int | None, by: int | None = None
) -> Teachers:
    """What moved a target in `update`, asked at its `answer`, or None of a held-out one.

    `by` is the update whose tokens get shares, if another one. Raises ValueError, one line, if the run does not have
    its tokens, or the engine refuses.
    """
    taught = asker.answer(Teach(target, update.number, update.number if by is None else by), Taught)
    of = update if taught.by == update.number else with_tokens(reader, taught.by)
    if len(taught.shares) != of.tokens:
        raise ValueError(
            f"update {taught.by} was repeated with {len(taught.shares)} tokens, and has {of.tokens} on record: this "
            "machine, or these versions, give other numbers than those of the run"
        )
    return Teachers(taught, of, answer if answer is not None and _wrote(update, answer, target) else None, asker)


def _wrote(update: Update, answer: int, target: Target) -> bool:
    """Whether an answer begins with the target, which then is no other candidate."""
    assert update.sampled is not None
    start, end = update.sampled.offsets[answer : answer + 2].tolist()
    beginning: list[int] = update.sampled.token_ids[start : min(end, start + len(target.answer_ids))].tolist()
    return beginning == target.answer_ids


def held_out_target(asker: Asker, held_out: Evaluated, index: int) -> Target:
    """All tokens of a held-out answer, counted from 0, as the tokenizer spells its words.

    Raises ValueError, one line, if there is no such answer or an environment wrote a part of it.
    """
    count = len(held_out.completions)
    if not 0 <= index < count:
        raise ValueError(f"there are {count} held-out answers, counted from 0; there is no {index}")
    columns = held_out.columns[index] if held_out.columns else None
    prefix = Prefix(held_out.prompts[index], columns=columns, text=held_out.completions[index])
    spelled = asker.answer(Peek(prefix), Peeked)
    return whole_text_target(spelled.prompt_ids, spelled.answer_ids)


def tokens_of(update: Update, answers: Sequence[int]) -> list[int]:
    """The places of all tokens that the policy sampled in some answers, ascending. Raises ValueError, one line."""
    for answer in answers:
        if not 0 <= answer < update.completions:
            raise ValueError(f"update {update.number} has answers 0 to {update.completions - 1}; there is no {answer}")
    return _places_of(update, answers)
