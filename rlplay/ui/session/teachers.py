"""What the screen knows of who taught a token, as plain data: a target, an update, and the engine's answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from rlplay.link.messages import EndProbe
from rlplay.trace.lenses import LENSES, Lens
from rlplay.trace.questions import Peek, Peeked, Prefix
from rlplay.trace.records import Array
from rlplay.trace.teachers import (
    AnyTeaching,
    AnyTeachingAnswer,
    TakeAway,
    TakenAway,
    Taught,
    TaughtCourse,
    Teach,
    TeachCourse,
)
from rlplay.trace.update import Update
from rlplay.ui.session.subjects import Subject, answer_subject

KEPT = 16
"""Answers with a number for each token that are kept, at most."""
_STRONG = 99.0
"""The percentile of the shares at which the scale of their colours ends: a single one may be far beyond."""

_KINDS: dict[type, type] = {Taught: Teach, TaughtCourse: TeachCourse, TakenAway: TakeAway}
Question = TypeVar("Question", Teach, TeachCourse, TakeAway)


class Teachers:
    """A subject, the update that moved it, and the update `by` whose tokens are looked at.

    Methods that need the engine return the question for it; `take` takes its answers. `version` is another one
    whenever there is something new to draw.
    """

    def __init__(self) -> None:
        self.subject: Subject | None = None
        self.spelling: Prefix | None = None  # an answer whose ids were asked for
        self.update = self.by = 0
        self.marked: frozenset[int] = frozenset()  # completions of `update`
        self.asked: AnyTeaching | None = None
        self.refused: dict[type, str] = {}  # why there is no answer, by the kind of the newest question
        self.stopped = False  # by the user
        self.version = 0
        self._taught: list[Taught] = []
        self._away: list[TakenAway] = []
        self._course: TaughtCourse | None = None
        self._rewinds = 0

    # What is known

    @property
    def taught(self) -> Taught | None:
        """The shares that are looked at; None before they are known."""
        subject = self.subject
        return None if subject is None else self.shares(Teach(subject.target, self.update, self.by))

    def shares(self, asked: Teach) -> Taught | None:
        """The answer to a question about shares; None if nobody has asked it."""
        same = (each for each in self._taught if (each.update, each.by) == (asked.update, asked.by))
        return next((each for each in same if each.target == asked.target), None)

    @property
    def course(self) -> TaughtCourse | None:
        """How far each update moved the subject, as far as that is known."""
        known, subject = self._course, self.subject
        return known if known is not None and subject is not None and known.target == subject.target else None

    def away(self, tokens: list[int]) -> TakenAway | None:
        """Where the subject would be without these tokens' credit; None if that was not measured."""
        subject = self.subject
        return None if subject is None else self.test(TakeAway(subject.target, self.update, tokens))

    def test(self, asked: TakeAway) -> TakenAway | None:
        """The answer to a question about a test; None if nobody has asked it."""
        same = (each for each in self._away if (each.update, each.tokens) == (asked.update, asked.tokens))
        return next((each for each in same if each.target == asked.target), None)

    def answer(self, asked: Teach | TakeAway) -> Taught | TakenAway | None:
        """The answer to a question; None if it is not known."""
        return self.shares(asked) if isinstance(asked, Teach) else self.test(asked)

    @property
    def lens(self) -> Lens:
        """The colours of the shares: named after the subject, with a scale that most of them fit."""
        taught, subject, lens = self.taught, self.subject, LENSES["share"]
        if taught is None or subject is None:
            return lens
        end = scale_end(taught.shares)
        return replace(lens, title=f"Share in {subject.name}", low=-end, high=end)

    def colour(self, update: Update | None) -> bool:
        """Give the update that is looked at its shares, for the lens; take those of another question away.

        Returns whether that changed anything.
        """
        if update is None:
            return False
        taught, before = self.taught, update.shares
        fits = taught is not None and taught.by == update.number and len(taught.shares) == update.tokens
        update.shares = taught.shares if taught is not None and fits else None
        return update.shares is not before

    # Questions

    def about(self, subject: Subject, update: int) -> Teach | None:
        """Be about another target, and what moved it in `update`; None if that is known."""
        self.subject, self.spelling = subject, None
        return self.look_at(update, update)

    def look_at(self, update: int, by: int) -> Teach | None:
        """Look at what the tokens of update `by` did to the subject in `update`; None if that is known."""
        if (update, by) != (self.update, self.by):
            self.marked = frozenset()
        self.update, self.by = update, by
        self.version += 1
        if self.subject is None or self.taught is not None:
            self.refused = {}
            return None
        return self._ask(Teach(self.subject.target, update, by))

    def spell(self, prefix: Prefix, update: int) -> Peek:
        """Be about an answer of which only the words are known, and what moved it in `update`; ask for its ids."""
        self.subject, self.spelling = None, prefix
        self.update = self.by = update
        self.marked, self.refused, self.stopped = frozenset(), {}, False
        self.version += 1
        return Peek(prefix)

    def spelled(self, peeked: Peeked) -> None:
        """Take the ids of an answer that was to be spelled; other answers are not for this."""
        if self.spelling is None or peeked.prefix != self.spelling:
            return
        self.spelling, self.refused = None, {}
        self.version += 1
        if peeked.refused:
            self.refused[Teach] = peeked.refused
            return
        try:
            self.subject = answer_subject(peeked.prefix.prompt, peeked.prompt_ids, peeked.answer_ids)
        except ValueError as error:
            self.refused[Teach] = str(error)

    def look_over_run(self, finished: int) -> TeachCourse | None:
        """Ask how far each update up to `finished` moved the subject; None if that is known or asked."""
        course = self.course
        known = course is not None and course.done and any(move.update >= finished for move in course.moves[-1:])
        if self.subject is None or self.asked is not None or known:
            return None
        return self._ask(TeachCourse(self.subject.target))

    def mark(self, completions: frozenset[int]) -> None:
        """Mark these answers of the update, or none of them if all are marked."""
        self.marked = self.marked - completions if completions <= self.marked else self.marked | completions
        self.version += 1

    def take_away(self, tokens: list[int]) -> TakeAway | None:
        """Ask for the update once more without the credit of these tokens; None if that is known."""
        if self.subject is None or self.away(tokens) is not None:
            return None
        return self._ask(TakeAway(self.subject.target, self.update, tokens))

    def cancel(self) -> EndProbe | None:
        """Stop the question under way; None if there is none."""
        return EndProbe() if self.end() else None

    def end(self) -> bool:
        """Nothing more comes. Returns whether a question was under way."""
        if self.asked is None:
            return False
        self.asked, self.stopped = None, True
        self.version += 1
        return True

    def _ask(self, question: Question) -> Question:
        if isinstance(self.asked, TeachCourse) and self._course is not None:
            self._course = None  # the next command ends it before it is complete
        self.asked, self.stopped = question, False
        self.refused.pop(type(question), None)
        self.version += 1
        return question

    # Answers

    def take(self, answer: AnyTeachingAnswer) -> None:
        """Take an answer of the engine; one to an earlier question is kept for a return to it."""
        here = self._answers(answer)
        self.version += 1
        if here and not (isinstance(answer, TaughtCourse) and not answer.done):
            self.asked = None
        if answer.refused:
            if here:
                self.refused[_KINDS[type(answer)]] = answer.refused
            return
        match answer:
            case Taught():
                self._taught = [*self._taught, answer][-KEPT:]
                if self.taught is answer:
                    self.refused.pop(Teach, None)
                    self.stopped = False
            case TakenAway():
                self._away = [*self._away, answer][-KEPT:]
            case TaughtCourse():
                self._course = answer if here else self._course

    def _answers(self, answer: AnyTeachingAnswer) -> bool:
        match self.asked, answer:
            case Teach() as asked, Taught():
                return (asked.target, asked.update, asked.by) == (answer.target, answer.update, answer.by)
            case TeachCourse() as asked, TaughtCourse():
                return asked.target == answer.target
            case TakeAway() as asked, TakenAway():
                return (asked.target, asked.update, asked.tokens) == (answer.target, answer.update, answer.tokens)
        return False

    def at(self, rewinds: int) -> bool:
        """Forget all answers if the run went back: its updates will be others. Returns whether it did."""
        if rewinds == self._rewinds:
            return False
        self._rewinds = rewinds
        self._taught, self._away, self._course, self.asked = [], [], None, None
        self.marked, self.refused = frozenset(), dict.fromkeys((Teach, TeachCourse), "the run has gone back meanwhile")
        self.version += 1
        return True


def scale_end(shares: Array) -> float:
    """Where the scale of these shares ends, in nats: a round number that one in a hundred is beyond."""
    sizes = np.abs(shares[shares != 0])
    if not len(sizes):
        return LENSES["share"].high
    end = float(np.percentile(sizes, _STRONG))
    return float(f"{end:.1g}") or LENSES["share"].high
