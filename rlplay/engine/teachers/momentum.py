"""The momentum that an update began with, opened by the updates that had put it there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch import Tensor

from rlplay.engine.snapshots import opened_moments
from rlplay.engine.stages import stage_at
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.steps_taken import Vector, dot
from rlplay.engine.teachers.update_taken import UpdateTaken

_FORGOTTEN = 200
"""Steps after which Adam has kept less than a billionth of a gradient."""


def of_momentum(taken: UpdateTaken, v: Vector) -> float:
    """What the momentum from before an update did in it; v is that of its first step."""
    return dot(taken.momentum, _weighed(taken, v))


def by_update(taken: UpdateTaken, v: Vector, past: Past) -> list[tuple[int, int, float]]:
    """Its parts: (since, update, sum) of the updates between two that are kept, newest first.

    The first moment after each of them, less what is left of the one before, is what the updates between have put
    there. Raises ValueError, one line, if a snapshot is damaged, and for `Past.go_on`.
    """
    number, (counts, _) = taken.record.number, taken.counts
    begins = past.plan.stages[stage_at(past.plan.stages, number - 1)].begins
    weighed, found = _weighed(taken, v), list[tuple[int, int, float]]()
    later, left = number - 1, dot(taken.momentum, weighed)
    for update in reversed([each for each in past.store.kept() if begins < each < number - 1]):
        past.go_on()
        with moments_after(update, past) as held:
            rest, since = Vector(), 0
            for name in weighed:
                if moments := held(name):
                    since = counts[name] - int(moments["step"])
                    rest[name] = moments["exp_avg"] * taken.beta1[name] ** since
            before = dot(rest, weighed)
        found.append((update, later, left - before))
        later, left = update, before
        if since > _FORGOTTEN:
            break
    return [*found, (begins, later, left)] if later > begins else found


@contextmanager
def moments_after(update: int, past: Past) -> Iterator[Callable[[str], dict[str, Tensor]]]:
    """What the optimizer held of a weight after an update whose weights are at hand, by the optimizer's names.

    Raises ValueError, one line, if the snapshot is damaged.
    """
    state = past.state
    if update in past.store.kept():
        with opened_moments(past.store.path(update)) as held:
            yield held
    elif update == state.update:
        yield lambda name: dict(state.optimizer.state.get(state.parameters[name], {}))
    else:
        yield lambda _name: {}


def _weighed(taken: UpdateTaken, v: Vector) -> Vector:
    return {name: each * (b := taken.beta1[name]) / (1 - b) for name, each in v.items()}
