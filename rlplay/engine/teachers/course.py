"""How far each update of a run moved a target, and of what that consists: one backward pass for each that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlplay.engine.stages import stage_at
from rlplay.engine.target_value import check_target
from rlplay.engine.teachers.past import Past, moments_after
from rlplay.engine.teachers.steps_taken import Rates, rates_of, slope_of
from rlplay.engine.weights_after import at_hand, weights_after
from rlplay.first_order import FORGOTTEN, Vector, dot
from rlplay.trace.teachers import Move, Target, TaughtCourse, TeachCourse


def teach_course(question: TeachCourse, past: Past) -> Iterator[TaughtCourse]:
    """A `TaughtCourse` after each update whose weights are at hand, with all before it; the last is `done`.

    Raises ValueError, one line, if the target cannot be asked about or a snapshot is damaged.
    """
    check_target(question.target, past.state.lm)
    moves, before = list[Move](), None
    for update in at_hand(past.state, past.store):
        if past.interrupted():
            break
        after = _place(update, question.target, past)
        if before is not None:
            moves.append(_move(before, after, past))
            yield TaughtCourse(question.target, moves=moves[:])
        before = after
    yield TaughtCourse(question.target, moves=moves, done=True)


@dataclass
class _Place:
    """The state after an update: its weights and ∇q, on the host; q."""

    update: int
    weights: Vector
    value: float
    slope: Vector


def _place(update: int, target: Target, past: Past) -> _Place:
    state = past.state
    with weights_after(update, state, past.store) as held:
        weights = {name: held.read_exact(name).to("cpu", copy=True) for name in state.parameters if name in held.names}
    value, slope = slope_of(target, weights, state, past.temperature)
    return _Place(update, weights, value, {name: each.cpu() for name, each in slope.items()})


@torch.no_grad()
def _move(before: _Place, after: _Place, past: Past) -> Move:
    """Of first order at the weights before. Exact where one step lies between; of several, the squares of their
    gradients are taken to be equal, as P of each is not kept."""
    moved = {name: after.weights[name] - before.weights[name] for name in before.slope}
    first_order = dot(before.slope, moved)
    schedule, earlier, decay = _rates(before.update, after.update, past), 0.0, 0.0
    with moments_after(before.update, past) as old, moments_after(after.update, past) as new:
        for name, rates in rates_of(past.state, past.settings_at((after.update, "update"))).items():
            if name not in before.slope:
                continue
            slope, (held, now) = before.slope[name], (old(name), new(name))
            steps = int(now["step"]) - int(held["step"] if held else 0) if now else len(schedule)
            each = (schedule + schedule[-1:] * steps)[:steps]
            if held:
                earlier += _of_momentum(slope, held, now or held, rates, each)
            decay -= rates.decay * sum(each) * dot({"": slope}, {"": before.weights[name]}) if rates.decay else 0.0
    return Move(
        before.update, after.update, after.value, measured=after.value - before.value,
        batch=first_order - earlier - decay, earlier=earlier, rest=decay,
    )  # fmt: skip


def _of_momentum(
    slope: Tensor, held: dict[str, Tensor], now: dict[str, Tensor], rates: Rates, schedule: list[float]
) -> float:
    """What Adam's first moment from before some steps did in them, to a weight's part of the target."""
    steps, begun, (b1, b2) = len(schedule), int(held["step"]), (rates.beta1, rates.beta2)
    old, new = held["exp_avg_sq"].cpu(), now["exp_avg_sq"].cpu()
    # v = β₂ʲ·old + (1 − β₂ʲ)·g², where g² is such that the last step ends at `new`.
    square = ((new - b2**steps * old) / (1 - b2**steps)).clamp(min=0) if steps else old
    total, pulled = 0.0, slope * held["exp_avg"].cpu()
    for step, rate in enumerate(schedule[:FORGOTTEN], 1):
        second = b2**step * old + (1 - b2**step) * square
        size = 1 / ((second / (1 - b2 ** (begun + step))).sqrt() + rates.eps)
        share = float((pulled * size).double().sum())
        total -= rate * b1**step / (1 - b1 ** (begun + step)) * share
    return total


def _rates(since: int, update: int, past: Past) -> list[float]:
    """The learning rates of the optimizer steps of the updates after `since` up to `update`."""
    found = list[float]()
    for each in range(since + 1, update + 1):
        settings, stage = past.settings_at((each, "update")), stage_at(past.plan.stages, each - 1)
        place = replace(past.state, settings=settings, update=each - 1, stage=stage)
        found += [place.learning_rate(step) for step in range(settings.steps)]
    return found
