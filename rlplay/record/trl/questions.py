"""What a screen may ask a trainer of TRL: who taught a token. Every other question gets its reason in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rlplay.trace.questions import AnyAnswer, AnyQuestion, refusal
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.teachers import TakeAway, Teach, TeachCourse, refuse_teaching

ONLY_TEACHERS = "this trainer answers who taught a token in its newest update, and nothing else"
NO_COURSE = "TRL keeps no earlier weights, so only its newest update has teachers"
NO_OTHER_UPDATE = "TRL cannot take an update once more without some of its tokens"
NO_REHEARSAL = "this trainer tries no settings; a checkpoint can: rlplay try RUN --checkpoint DIR"


class Answers(Protocol):
    """What answers a screen between two updates, and what it does when the screen leaves."""

    def taught(self, question: Teach, interrupted: Callable[[], bool]) -> AnyAnswer:
        """The answer to who taught a token; `interrupted` says whether the screen wants something else by now."""

    def leave(self) -> None:
        """Nobody asks any more."""


def answered(question: AnyQuestion, answers: Answers, interrupted: Callable[[], bool]) -> AnyAnswer:
    """The answer to any question."""
    match question:
        case Teach():
            return answers.taught(question, interrupted)
        case TeachCourse():
            return refuse_teaching(question, NO_COURSE)
        case TakeAway():
            return refuse_teaching(question, NO_OTHER_UPDATE)
        case Rehearse():
            return refusal(question, NO_REHEARSAL)
        case _:
            return refusal(question, ONLY_TEACHERS)
