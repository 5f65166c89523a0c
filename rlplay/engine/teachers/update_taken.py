"""An earlier update as it was taken: its batch, its optimizer steps, and a target before and after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.stages import stage_at
from rlplay.engine.state import State
from rlplay.engine.target_value import check_target
from rlplay.engine.teachers.lent import lent
from rlplay.engine.teachers.past import Past, moments_after
from rlplay.engine.teachers.recorded_batch import recorded_batch
from rlplay.engine.teachers.steps_taken import (
    Before,
    Reached,
    StepTaken,
    exact_weights,
    first_moments,
    rates_of,
    reached_by,
    repeated_steps,
    slope_of,
    steps_of,
    taken,
    value_of,
)
from rlplay.engine.weights_after import at_hand, weights_after
from rlplay.first_order import Vector
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update


@dataclass
class UpdateTaken:
    """An update's record, batch and steps, and q before and after it. `state` has the settings of its steps.

    `momentum` is Adam's first moment before the update, `begun` how many steps it had taken of each weight by then.
    """

    record: Update
    batch: Batch
    state: State
    steps: list[StepTaken]
    before: float
    after: float
    momentum: Vector
    begun: dict[str, int]

    @property
    def ended(self) -> dict[str, int]:
        """How many steps Adam had taken of each weight by the end."""
        return {name: count + sum(name in step.pulled for step in self.steps) for name, count in self.begun.items()}

    @property
    def beta1(self) -> dict[str, float]:
        """Of the optimizer, by weight."""
        return {name: rates.beta1 for name, rates in rates_of(self.state, self.state.settings).items()}


def update_taken(record: Update, target: Target, past: Past) -> UpdateTaken:
    """An update on record. Raises ValueError, one line, if it cannot be looked at, and for `Past.go_on`."""
    check_loss(record.number, past.settings_at((record.number, "update")))
    check_target(target, past.state.lm)
    past.go_on()
    return _read(record, target, past) if is_kept(record, past) else _repeated(record, target, past)


def is_kept(record: Update, past: Past) -> bool:
    """Whether the one step of an update lies between two states that are at hand, each with its optimizer."""
    number, there, stages = record.number, at_hand(past.state, past.store), past.plan.stages
    own = stage_at(stages, number - 1) == stage_at(stages, number) == past.state.stage
    still = past.state.lm.began is None  # else the reference was another one
    return len(record.steps) == 1 and own and still and number in there and number - 1 in there


def _read(record: Update, target: Target, past: Past) -> UpdateTaken:
    """From the states before and after it; nothing is computed again."""
    number, own = record.number, past.state
    with moments_after(number - 1, past) as held, weights_after(number - 1, own, past.store) as before:
        weights = {name: before.read_exact(name).cpu() for name in own.parameters if name in before.names}
        moments = {name: held(name) for name in weights}
    state, settings = _as_then(record, own, past)
    batch = recorded_batch(record, lent(state, weights))
    state = replace(state, settings=settings)
    momentum = {name: each["exp_avg"] for name, each in moments.items() if each}
    begun = {name: int(each["step"]) if each else 0 for name, each in moments.items()}
    q = slope_of(target, weights, state, batch.temperature)
    start = Before(weights, *q, momentum, begun)
    with moments_after(number, past) as held, weights_after(number, own, past.store) as after:

        def reached(name: str) -> Reached | None:
            return reached_by(after.read_exact(name), now) if (now := held(name)) else None

        step = taken(record.steps[0], start, reached, rates_of(own, settings))
        later = value_of(target, {name: after.read_exact(name) for name in weights}, state, batch.temperature)
    return UpdateTaken(record, batch, state, [step], q[0], later, momentum, begun)


def _repeated(record: Update, target: Target, past: Past) -> UpdateTaken:
    """By taking its steps again, from the answers on record."""
    state, settings = _as_then(record, past.after(record.number - 1), past)
    batch = recorded_batch(record, state)
    state.settings, state.batch = settings, batch
    momentum, begun, steps = first_moments(state), steps_of(state), list[StepTaken]()
    before = value_of(target, exact_weights(state), state, batch.temperature)
    for step in repeated_steps(record, batch, target, state, past.plan.seed):
        past.go_on()
        steps.append(step)
    after = value_of(target, _weights_after(record.number, state, past), state, batch.temperature)
    return UpdateTaken(record, batch, state, steps, before, after, momentum, begun)


def _as_then(record: Update, state: State, past: Past) -> tuple[State, Settings]:
    """The state as it gave credit in an update, and the settings of its steps."""
    number, update = record.number, past.settings_at((record.number, "update"))
    lm = replace(state.lm)
    lm.run_as(past.settings_at((number, "sample")))
    adapted = [step.metrics["kl_coef"] for step in record.steps if "kl_coef" in step.metrics]
    then = replace(state, lm=lm, settings=past.settings_at((number, "credit")), update=number - 1, batch=None)
    return replace(then, adapted=(adapted[0], update.beta)) if adapted else then, update


def check_loss(number: int, settings: Settings) -> None:
    """Raises ValueError, one line, if the loss of an update has no shares of first order."""
    if settings.loss_type in ("q_learning", "sarsa"):
        name = "Q-learning" if settings.loss_type == "q_learning" else "SARSA"
        raise ValueError(f"update {number} has no gradients: {name} moves each value by itself, so none taught another")
    if settings.distils_in_loss and settings.mode_row.whole:
        raise ValueError(
            f"update {number} learned from a teacher's whole distributions, which act on all candidates and not on the "
            "token that was written; distillation_mode=sampled_token or advantage has shares"
        )
    if settings.loss_type == "reward":
        raise ValueError(f"update {number} trained the reward model; it did not move the policy")
    if settings.loss_type == "policy_gradient" and settings.surrogate_row.trust_region:
        raise ValueError(f"update {number} took TRPO's step, which its search has bent: its parts have no shares")


def _weights_after(number: int, state: State, past: Past) -> Vector:
    """The policy's weights after the update: the run's own where they are at hand, else those of `state`."""
    if number not in at_hand(past.state, past.store):
        return exact_weights(state)
    with weights_after(number, past.state, past.store) as weights:
        return {name: weights.read_exact(name) for name in exact_weights(state)}
