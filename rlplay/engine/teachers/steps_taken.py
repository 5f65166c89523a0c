"""The optimizer steps of an earlier update, with what each did to a target to first order.

One step between two snapshots is read from them; several are taken again from the answers on record. Vectors of the
size of the model wait on the host.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.agreement import rounded
from rlplay.engine.batch import Batch
from rlplay.engine.model import POLICY, VALUE, trainable
from rlplay.engine.optimize import TrainedMinibatch, optimize
from rlplay.engine.snapshots import opened, opened_moments
from rlplay.engine.state import State
from rlplay.engine.target_value import target_value
from rlplay.engine.teachers.recorded_batch import training
from rlplay.trace.records import Stepped
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update

Vector = dict[str, Tensor]
"""A number for every trained weight, by its name in `State.parameters`; weights that are not named have 0."""


@dataclass(frozen=True)
class Rates:
    """What the optimizer multiplies with: AdamW's constants, and the weight decay of this weight."""

    beta1: float
    beta2: float
    eps: float
    decay: float


@dataclass
class Reached:
    """Where an optimizer step has brought a weight: exact, with both moments, and how many steps it has taken."""

    weight: Tensor
    first: Tensor
    second: Tensor
    steps: int


@dataclass
class StepTaken:
    """An optimizer step: what is on record of it; the weights before it; q there.

    Its `slopes` are −lr·(1−β₁)/(1−β₁ᵗ)·P∘∇q, so that ⟨slopes, c·g⟩ is what the step's own gradient g did to q; `pulled`
    is c·g, the gradient times what `max_grad_norm` left of it. `steepness` is ⟨slopes, ∇q⟩, `first_order` is ⟨∇q, Δθ⟩
    of the weights as they moved, `decay` the part of the weight decay.
    """

    record: Stepped
    weights: Vector
    value: float
    slopes: Vector
    pulled: Vector
    steepness: float
    first_order: float
    decay: float


def dot(a: Vector, b: Vector) -> float:
    """Σ a·b over the weights that both have, in float64."""
    return math.fsum(_dot(a[name], b[name]) for name in a if name in b)


def _dot(a: Tensor, b: Tensor) -> float:
    if a.device.type == "mps":  # which has no float64
        a, b = a.cpu(), b.cpu()
    return float(a.flatten().double().dot(b.flatten().double()))


def exact_copy(state: State) -> State:
    """The same state if its weights are exact; if they are in bfloat16, one with the policy in float32.

    A difference of two passes in bfloat16 would be rounding.
    """
    if not rounded(state.lm):
        return state
    lm = replace(state.lm, policy=copy.deepcopy(state.lm.policy).float())
    return replace(state, lm=lm, parameters=trainable(lm, state.value_head))


@torch.no_grad()
def put(state: State, weights: Mapping[str, Tensor]) -> None:
    """Give a state's parameters these values."""
    for name, weight in weights.items():
        state.parameters[name].copy_(weight)


@torch.no_grad()
def exact_weights(state: State) -> Vector:
    """What is trained of policy and value head, on the host; of a weight in bfloat16 its master."""
    return {
        name: state.optimizer.state.get(parameter, {}).get("master", parameter).detach().to("cpu", copy=True)
        for name, parameter in state.parameters.items()
        if name.startswith((POLICY, VALUE))
    }


def first_moments(state: State) -> Vector:
    """Adam's first moment where it has one, on the host."""
    found = {name: state.optimizer.state.get(p, {}) for name, p in state.parameters.items()}
    return {name: each["exp_avg"].to("cpu", copy=True) for name, each in found.items() if each}


def steps_of(state: State) -> dict[str, int]:
    """How many steps the optimizer has taken of each weight."""
    found = {name: state.optimizer.state.get(p, {}) for name, p in state.parameters.items()}
    return {name: int(each["step"]) if each else 0 for name, each in found.items()}


def rates_of(state: State, settings: Settings) -> dict[str, Rates]:
    """What the optimizer multiplies each weight's step with."""
    names = {id(parameter): name for name, parameter in state.parameters.items()}
    return {
        names[id(parameter)]: Rates(b1, b2, group["eps"], settings.weight_decay if group["decays"] else 0.0)
        for group in state.optimizer.param_groups
        for b1, b2 in [group["betas"]]
        for parameter in group["params"]
    }


def slope_of(target: Target, state: State, temperature: float) -> tuple[float, Vector]:
    """q and ∇q by the weights of the policy, where they are; weights that q does not depend on are left out."""
    names = [name for name in state.parameters if name.startswith(POLICY)]
    with torch.enable_grad():
        value = target_value(target, state.lm, temperature)
        slopes = torch.autograd.grad(value, [state.parameters[name] for name in names], allow_unused=True)
    found = {name: slope for name, slope in zip(names, slopes, strict=True) if slope is not None}
    return float(value.detach()), found


@dataclass
class _Before:
    """What is needed of the state before a step."""

    weights: Vector
    value: float
    slope: Vector
    first: Vector
    steps: dict[str, int]


def _before(state: State, exact: State, target: Target, temperature: float) -> _Before:
    weights = exact_weights(state)
    if exact is not state:
        put(exact, weights)
    value, slope = slope_of(target, exact, temperature)
    return _Before(weights, value, slope, first_moments(state), steps_of(state))


def _taken(
    record: Stepped, before: _Before, after: Callable[[str], Reached | None], rates: dict[str, Rates]
) -> StepTaken:
    slopes, pulled, steepness, first_order, decay = Vector(), Vector(), 0.0, 0.0, 0.0
    rate = record.metrics["learning_rate"]
    for name, slope in before.slope.items():
        own, now = rates[name], after(name)
        if now is None or now.steps == before.steps[name]:
            continue  # no gradient has reached it in this step
        now, held = _on(now, slope.device), before.weights[name].to(slope.device)
        size = 1 / ((now.second / (1 - own.beta2**now.steps)).sqrt() + own.eps)
        # Where there has never been a gradient nothing has moved, and P would be 1/ε.
        size = torch.where(now.second > 0, size, 0.0)
        slopes[name] = (-rate * (1 - own.beta1) / (1 - own.beta1**now.steps) * size * slope).cpu()
        steepness += dot({"": slopes[name]}, {"": slope.cpu()})
        first = before.first[name].to(slope.device) if name in before.first else torch.zeros_like(slope)
        pulled[name] = ((now.first - own.beta1 * first) / (1 - own.beta1)).cpu()
        first_order += dot({"": slope}, {"": now.weight - held})
        decay -= rate * own.decay * dot({"": slope}, {"": held}) if own.decay else 0.0
    return StepTaken(record, before.weights, before.value, slopes, pulled, steepness, first_order, decay)


def _on(reached: Reached, device: torch.device) -> Reached:
    return Reached(reached.weight.to(device), reached.first.to(device), reached.second.to(device), reached.steps)


def read_step(
    record: Stepped, target: Target, state: State, exact: State, settings: Settings, after: Path, temperature: float
) -> StepTaken:
    """The one step of an update between `state` and the snapshot `after`. Raises ValueError if that is damaged."""
    before = _before(state, exact, target, temperature)
    with opened(after) as (_, _, weight), opened_moments(after) as held:

        def reached(name: str) -> Reached | None:
            moments = held(name)
            return _reached(weight(name), moments) if moments else None

        return _taken(record, before, reached, rates_of(state, settings))


def repeated_steps(
    update: Update, batch: Batch, target: Target, state: State, exact: State, seed: int
) -> Iterator[StepTaken]:
    """The steps of an update, taken again; `state`, with the settings of the steps, moves on with them."""
    how, rates, waiting = training(update, batch, state), rates_of(state, state.settings), list[_Before]()

    def watched(part: Tensor) -> TrainedMinibatch:
        waiting.append(_before(state, exact, target, batch.temperature))
        return how.gradients(part)

    def reached(name: str) -> Reached | None:
        parameter = state.parameters[name]
        moments = state.optimizer.state.get(parameter, {})
        return _reached(moments.get("master", parameter.detach()), moments) if moments else None

    for record in optimize(batch, how.items, watched, state, seed) if how.items else ():
        if isinstance(record, Stepped):
            yield _taken(record, waiting.pop(), reached, rates)


def _reached(weight: Tensor, moments: Mapping[str, Tensor]) -> Reached:
    return Reached(weight, moments["exp_avg"], moments["exp_avg_sq"], int(moments["step"]))
