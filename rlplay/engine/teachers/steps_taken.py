"""The optimizer steps of an earlier update, with what each did to a target to first order.

One step between two snapshots is read from them; several are taken again from the answers on record. Vectors of the
size of the model wait on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.model import POLICY, VALUE
from rlplay.engine.optimize import TrainedMinibatch, optimize
from rlplay.engine.state import State
from rlplay.engine.target_value import target_value
from rlplay.engine.teachers.lent import lent
from rlplay.engine.teachers.recorded_batch import training
from rlplay.first_order import Vector, dot, gradient_taken, step_sizes
from rlplay.trace.records import Stepped
from rlplay.trace.teachers import Target
from rlplay.trace.update import Update


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
    is c·g, the gradient times what `max_grad_norm` left of it. `sizes` are of ∇q and of c·g, by the
    metric −lr·(1−β₁)/(1−β₁ᵗ)·P; `first_order` is ⟨∇q, Δθ⟩ of the weights as they moved, `decay` the part of the weight
    decay.
    """

    record: Stepped
    weights: Vector
    value: float
    slopes: Vector
    pulled: Vector
    sizes: tuple[float, float]
    first_order: float
    decay: float

    def let_go(self) -> None:
        """Forget the vectors, which are as large as the model."""
        self.weights, self.slopes, self.pulled = Vector(), Vector(), Vector()


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


def slope_of(target: Target, weights: Vector, state: State, temperature: float) -> tuple[float, Vector]:
    """q and ∇q by other weights than those of the state, on its device; what q does not depend on is left out."""
    leaves = {n: w.detach().to(state.lm.device).requires_grad_() for n, w in weights.items() if n.startswith(POLICY)}
    with torch.enable_grad():
        value = target_value(target, lent(state, leaves).lm, temperature)
        slopes = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    found = {name: slope for name, slope in zip(leaves, slopes, strict=True) if slope is not None}
    return float(value.detach()), found


@torch.no_grad()
def value_of(target: Target, weights: Vector, state: State, temperature: float) -> float:
    """q alone."""
    return float(target_value(target, lent(state, weights).lm, temperature))


@dataclass
class Before:
    """What is needed of a state before a step: `weights`, q and ∇q there; Adam's first moment, and its steps so far."""

    weights: Vector
    value: float
    slope: Vector
    first: Vector
    steps: dict[str, int]


@torch.no_grad()
def taken(
    record: Stepped, before: Before, after: Callable[[str], Reached | None], rates: dict[str, Rates]
) -> StepTaken:
    """A step between two states; `after` tells of a weight, None if it has had no step yet."""
    slopes, pulled, steep, pull, first_order, decay = Vector(), Vector(), 0.0, 0.0, 0.0, 0.0
    rate = record.metrics["learning_rate"]
    for name, slope in before.slope.items():
        own, now = rates[name], after(name)
        if now is None or now.steps == before.steps[name]:
            continue  # no gradient has reached it in this step
        now, held = _on(now, slope.device), before.weights[name].to(slope.device)
        size = step_sizes(now.second, rate, (own.beta1, own.beta2), own.eps, now.steps)
        first = before.first[name].to(slope.device) if name in before.first else torch.zeros_like(slope)
        gradient = gradient_taken(first, now.first, own.beta1)
        slopes[name], pulled[name] = (size * slope).cpu(), gradient.cpu()
        steep -= dot({"": size * slope}, {"": slope})
        pull -= dot({"": size * gradient}, {"": gradient})
        first_order += dot({"": slope}, {"": now.weight - held})
        decay -= rate * own.decay * dot({"": slope}, {"": held}) if own.decay else 0.0
    return StepTaken(record, before.weights, before.value, slopes, pulled, (steep**0.5, pull**0.5), first_order, decay)


def _on(reached: Reached, device: torch.device) -> Reached:
    return Reached(reached.weight.to(device), reached.first.to(device), reached.second.to(device), reached.steps)


def repeated_steps(update: Update, batch: Batch, target: Target, state: State, seed: int) -> Iterator[StepTaken]:
    """The steps of an update, taken again; `state`, with the settings of the steps, moves on with them."""
    how, rates, waiting = training(update, batch, state), rates_of(state, state.settings), list[Before]()

    def watched(part: Tensor) -> TrainedMinibatch:
        weights = exact_weights(state)
        q = slope_of(target, weights, state, batch.temperature)
        waiting.append(Before(weights, *q, first_moments(state), steps_of(state)))
        return how.gradients(part)

    def reached(name: str) -> Reached | None:
        parameter = state.parameters[name]
        moments = state.optimizer.state.get(parameter, {})
        return reached_by(moments.get("master", parameter.detach()), moments) if moments else None

    for record in optimize(batch, how.items, watched, state, seed) if how.items else ():
        if isinstance(record, Stepped):
            yield taken(record, waiting.pop(), reached, rates)


def reached_by(weight: Tensor, moments: Mapping[str, Tensor]) -> Reached:
    """A weight, and what the optimizer holds of it, by the optimizer's names."""
    return Reached(weight, moments["exp_avg"], moments["exp_avg_sq"], int(moments["step"]))
