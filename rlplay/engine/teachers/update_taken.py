"""An earlier update as it was taken: its batch, its optimizer steps, and a target before and after it."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.state import State
from rlplay.engine.target_value import check_target, target_value
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.recorded_batch import recorded_batch
from rlplay.engine.teachers.steps_taken import (
    StepTaken,
    Vector,
    exact_copy,
    exact_weights,
    first_moments,
    put,
    rates_of,
    read_step,
    repeated_steps,
    steps_of,
)
from rlplay.engine.weights_after import at_hand, weights_after
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update


@dataclass
class UpdateTaken:
    """An update's record, batch and steps, and q before and after it. `exact` is a state with weights to try.

    `momentum` is Adam's first moment before the update, `counts` how many steps it had taken of each weight by then,
    and by the end; `beta1` by weight, too.
    """

    record: Update
    batch: Batch
    exact: State
    steps: list[StepTaken]
    before: float
    after: float
    momentum: Vector
    counts: tuple[dict[str, int], dict[str, int]]
    beta1: dict[str, float]


def update_taken(number: int, target: Target, past: Past) -> UpdateTaken:
    """The update `number`. Raises ValueError, one line, if it cannot be looked at, and for `Past.go_on`."""
    record, settings = past.recorded(number), past.settings_at((number, "update"))
    check_loss(number, settings)
    past.go_on()
    state = past.after(number - 1)
    state.lm.run_as(past.settings_at((number, "sample")))
    state.settings = past.settings_at((number, "credit"))
    batch = recorded_batch(record, state)
    state.settings = settings
    state.batch = batch
    momentum, beta1 = first_moments(state), {name: rates.beta1 for name, rates in rates_of(state, settings).items()}
    begun = steps_of(state)
    check_target(target, state.lm)
    exact, steps = exact_copy(state), list[StepTaken]()
    put(exact, exact_weights(state))
    before = _value(target, exact, batch)
    if len(record.steps) == 1 and _is_kept(number, past):
        path = past.store.path(number)
        steps.append(read_step(record.steps[0], target, state, exact, settings, path, batch.temperature))
    else:
        for step in repeated_steps(record, batch, target, state, exact, past.plan.seed):
            past.go_on()
            steps.append(step)
    ended = {name: count + sum(name in step.pulled for step in steps) for name, count in begun.items()}
    put(exact, _weights_after(number, state, past))
    after = _value(target, exact, batch)
    return UpdateTaken(record, batch, exact, steps, before, after, momentum, (begun, ended), beta1)


def check_loss(number: int, settings: Settings) -> None:
    """Raises ValueError, one line, if the loss of an update has no shares of first order."""
    if settings.loss_type in ("q_learning", "sarsa"):
        raise ValueError(f"update {number} has no gradients: {settings.loss_type} moves each value by itself")
    if settings.loss_type == "reward":
        raise ValueError(f"update {number} trained the reward model; it did not move the policy")
    if settings.loss_type == "policy_gradient" and settings.surrogate_row.trust_region:
        raise ValueError(f"update {number} took TRPO's step, which its search has bent: its parts have no shares")


def _is_kept(number: int, past: Past) -> bool:
    """Whether a snapshot has what the optimizer held after the update; with a stage another one begins."""
    return number in past.store.kept() and all(stage.begins != number for stage in past.plan.stages)


def _weights_after(number: int, state: State, past: Past) -> Vector:
    """The policy's weights after the update: the run's own where they are at hand, else those of `state`."""
    if number not in at_hand(past.state, past.store):
        return exact_weights(state)
    with weights_after(number, past.state, past.store) as weights:
        return {name: weights.read_exact(name) for name in exact_weights(state)}


@torch.no_grad()
def _value(target: Target, state: State, batch: Batch) -> float:
    return float(target_value(target, state.lm, batch.temperature))
