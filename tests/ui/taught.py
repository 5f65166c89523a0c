"""Made-up answers about who taught a token, as the engine would give them: their parts add up."""

from __future__ import annotations

import numpy as np

from rlplay.trace.teachers import Move, TakeAway, TakenAway, Taught, TaughtCourse, Teach, TeachCourse
from rlplay.trace.update import Update


def taught(question: Teach, update: Update, before: float = -0.48, earlier: float = 0.03, **more: object) -> Taught:
    """The answer to a `Teach` about the recorded `update`: each token has a share by its pull, up or down by its id."""
    pull = update.pull()
    assert pull is not None
    assert update.sampled is not None
    sides = np.where(update.sampled.token_ids % 3 == 0, -1.0, 1.0)
    shares = (np.nan_to_num(pull) * sides * np.linspace(0.004, 0.001, len(pull))).astype(np.float32)
    batch = float(shares.sum(dtype=np.float64))
    earlier_by = [(number - 1, number, earlier / (question.update - 1)) for number in range(question.update - 1, 0, -1)]
    values = {
        "temperature": 1.0, "steps": 2, "before": before, "after": before + 1.1 * (batch + earlier),
        "shares": shares, "batch": batch, "earlier": earlier, "earlier_by": earlier_by,
        "rest": {"weight decay": 0.0}, "first_order": batch + earlier,
    }  # fmt: skip
    return Taught(question.target, question.update, question.by, **{**values, **more})  # type: ignore[arg-type]


def course(question: TeachCourse, last: int, done: bool = True) -> TaughtCourse:
    """The answer to a `TeachCourse`: the target rises, and each update has less part in it."""
    moves = [
        Move(number - 1, number, -2.0 + 0.5 * number - 0.1 * number * number / 2, 0.4 / number, 0.3 / number,
             0.08 / number, 0.0)
        for number in range(1, last + 1)
    ]  # fmt: skip
    return TaughtCourse(question.target, moves=moves, done=done)


def away(question: TakeAway, known: Taught) -> TakenAway:
    """The answer to a `TakeAway`: a third of the share is missed."""
    share = float(known.shares[question.tokens].sum())
    return TakenAway(question.target, question.update, question.tokens, before=known.before, after=known.after,
                     without=known.after - share / 3)  # fmt: skip
