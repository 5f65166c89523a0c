"""The answer to "which tokens moved this target in that update?": shares that add up, to first order."""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.engine import ranks
from rlplay.engine.out_of_memory import is_out_of_memory, release
from rlplay.engine.stages import stage_at
from rlplay.engine.teachers.memory import check_memory
from rlplay.engine.teachers.momentum import by_update, of_momentum
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.shares import directions, directions_from, shares
from rlplay.engine.teachers.update_taken import is_kept, update_taken
from rlplay.trace.teachers import Taught, Teach


def teach(question: Teach, past: Past) -> Iterator[Taught]:
    """The shares. Raises ValueError, one line, if they cannot be told, and for `Past.go_on`."""
    check(question, past)
    try:
        yield _taught(question, past)
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        release(error)
        raise ValueError("memory is short of a second copy of the model; ask of a run with a smaller one") from None


def check(question: Teach, past: Past) -> None:
    """Raises ValueError, one line, if no update of this run could answer."""
    if ranks.count() > 1:
        raise ValueError("several processes train this run; only one that trains alone can tell who taught a token")
    if not 1 <= question.by <= question.update:
        raise ValueError(f"update {question.by} cannot have moved anything in update {question.update}")
    stages = past.plan.stages
    begins = stages[stage_at(stages, question.update - 1)].begins
    if question.by <= begins:
        raise ValueError(f"the optimizer began anew after update {begins}; nothing of update {question.by} was left")


def _taught(question: Teach, past: Past) -> Taught:
    record = past.recorded(question.update)
    by = record if question.by == question.update else past.recorded(question.by)
    updates = [record] if by is record else [record, by]
    check_memory(past.state, updates, sum(not is_kept(each, past) for each in updates))
    taken = update_taken(record, question.target, past)
    own = shares(taken, directions(taken), past)
    shown, v = own.tokens, own.first
    if by is not record:
        earlier = update_taken(by, question.target, past)
        shown = shares(earlier, directions_from(earlier, v, taken.begun), past).tokens
    decay = sum(step.decay for step in taken.steps)
    return Taught(
        question.target, question.update, question.by, temperature=taken.batch.temperature, steps=len(taken.steps),
        before=taken.before, after=taken.after, shares=shown, batch=own.total, earlier=of_momentum(taken, v),
        earlier_by=by_update(taken, v, past),
        rest=own.others | ({"weight decay": decay} if decay else {}),
        first_order=sum(step.first_order for step in taken.steps),
    )  # fmt: skip
