"""Who takes which answer of the engine."""

from __future__ import annotations

from typing import Protocol

from rlplay.trace.questions import (
    AnyAnswer,
    Continued,
    Estimated,
    Judged,
    LayersRead,
    NeighboursFound,
    Peeked,
    Reached,
    Recalled,
    Tried,
    Weighed,
)
from rlplay.trace.rehearsals import Rehearsed
from rlplay.trace.teachers import TakenAway, Taught, TaughtCourse
from rlplay.ui.session.probing import Probing
from rlplay.ui.session.reaching import Reaching
from rlplay.ui.session.rehearsing import Rehearsing
from rlplay.ui.session.teachers import Teachers
from rlplay.ui.session.weighing import Weighing
from rlplay.ui.session.writing import Writing


class Asking(Protocol):
    """What asks: the part of a session that is told."""

    judged: Judged | None
    reaching: Reaching | None
    rehearsing: Rehearsing | None
    writing: Writing
    weighing: Weighing
    teachers: Teachers
    probing: Probing

    def colour_shares(self) -> None: ...


def take_answer(session: Asking, answer: AnyAnswer) -> None:
    """Give an answer to what asked for it."""
    match answer:
        case Judged():
            session.judged = answer
        case Reached():
            if session.reaching is not None:
                session.reaching.take(answer)
        case Rehearsed():
            if session.rehearsing is not None:
                session.rehearsing.take(answer)
        case Tried():
            session.writing.take(answer)
        case Weighed() | LayersRead() | NeighboursFound():
            session.weighing.take(answer)
        case Taught() | TaughtCourse() | TakenAway():
            session.teachers.take(answer)
            session.colour_shares()
        case Peeked() | Continued() | Estimated() | Recalled():
            session.probing.take(answer)
            if isinstance(answer, Peeked):
                session.teachers.spelled(answer)
