"""Who takes which answer of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from rlplay.ui.session.session import Session


def take_answer(session: Session, answer: AnyAnswer) -> None:
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
