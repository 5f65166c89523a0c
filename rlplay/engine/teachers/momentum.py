"""The momentum that an update began with, opened by the updates that had put it there."""

from __future__ import annotations

from rlplay.engine.stages import stage_at
from rlplay.engine.teachers.past import Past, moments_after
from rlplay.engine.teachers.update_taken import UpdateTaken
from rlplay.first_order import FORGOTTEN, Vector, dot


def of_momentum(taken: UpdateTaken, v: Vector) -> float:
    """What the momentum from before an update did in it; v is that of its first step."""
    return dot(taken.momentum, _weighed(taken, v))


def by_update(taken: UpdateTaken, v: Vector, past: Past) -> list[tuple[int, int, float]]:
    """Its parts: (since, update, sum) of the updates between two that are kept, newest first.

    The first moment after each of them, less what is left of the one before, is what the updates between have put
    there. Raises ValueError, one line, if a snapshot is damaged, and for `Past.go_on`.
    """
    number, counts = taken.record.number, taken.begun
    begins = past.plan.stages[stage_at(past.plan.stages, number - 1)].begins
    beta1, weighed, found = taken.beta1, _weighed(taken, v), list[tuple[int, int, float]]()
    later, left = number - 1, dot(taken.momentum, weighed)
    for update in reversed([each for each in past.store.kept() if begins < each < number - 1]):
        past.go_on()
        with moments_after(update, past) as held:
            rest, since = Vector(), 0
            for name in weighed:
                if moments := held(name):
                    since = counts[name] - int(moments["step"])
                    rest[name] = moments["exp_avg"] * beta1[name] ** since
            before = dot(rest, weighed)
        found.append((update, later, left - before))
        later, left = update, before
        if since > FORGOTTEN:
            break
    return [*found, (begins, later, left)] if later > begins else found


def _weighed(taken: UpdateTaken, v: Vector) -> Vector:
    beta1 = taken.beta1
    return {name: each * beta1[name] / (1 - beta1[name]) for name, each in v.items()}
