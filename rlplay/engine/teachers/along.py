"""How a batch's log-probabilities, and what else a loss reads, change along a direction in the space of the weights.

All tokens at once, by two passes without gradients: the difference between a little ahead and a little behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from rlplay.algorithms import divergences
from rlplay.engine.batch import Batch
from rlplay.engine.objective import value_loss
from rlplay.engine.passes import token_logprobs
from rlplay.engine.policy_gradient import inputs_of, share_of
from rlplay.engine.state import State
from rlplay.engine.teachers.steps_taken import Vector, put
from rlplay.engine.tensors import Tensors

TRIES = 6
"""Widths that are tried, at most; each costs two passes."""
NEAR = {torch.float64: 1e-7, torch.float32: 2e-3}
"""How far, relative, what all tokens did may be from what is known of it, by the precision of the weights."""
_WIDE = 3.0
"""A width moves log-probabilities by about this many times ∛ε, where rounding and curvature cost alike."""
_HIDDEN = 16
"""A width that moves so many times less than that is too small."""
_HARDLY = 1 / 50
"""Of sums that cancel, the share of the sum of all absolute values that counts as their size."""


@dataclass
class Reading:
    """What a loss reads of some completions: log-probabilities [R, L], and in nats what it has besides, by name."""

    logprobs: Tensor
    others: dict[str, float] = field(default_factory=dict)


@dataclass
class Along:
    """What the `tokens` [R, L], float64 on the CPU, and the `others` of a loss change along a direction.

    `off` is how far their sum is from what is known of it, relative to it.
    """

    tokens: Tensor
    others: dict[str, float]
    off: float


def has_others(state: State, batch: Batch) -> bool:
    """Whether a loss reads more of the policy than the log-probabilities of the tokens."""
    if state.settings.loss_type != "policy_gradient":
        return False
    return bool(state.settings.entropy_coef) or batch.values is not None or batch.anchor is not None


def reading(state: State, batch: Batch, rows: Tensor) -> Reading:
    """Of the completions `rows`, by the policy as it is now."""
    if state.settings.loss_type != "policy_gradient":
        logprobs = token_logprobs(state.lm, state.lm.policy, batch.tokens(rows), batch.temperature)
        return Reading(logprobs.cpu().double())
    there = rows.to(batch.ids.device)
    inputs, values = inputs_of(batch, rows, there, state)
    found, settings = Reading(inputs.logprobs.cpu().double()), state.settings
    share = share_of(batch, rows, settings)
    weights, bonus = share.weights.to(there.device), share.bonus.to(there.device)
    if inputs.entropy is not None:
        found.others["entropy bonus"] = -settings.entropy_coef * float((bonus * inputs.entropy).cpu().double().sum())
    if inputs.anchor is not None and inputs.distribution is not None and not inputs.at_anchor:
        pair = inputs.distribution, inputs.anchor
        exact = divergences.full(Tensors, *(reversed(pair) if settings.kl_anchor == "old" else pair))
        found.others["KL"] = state.kl_coef * float((weights * exact).cpu().double().sum())
    if values is not None and batch.values is not None and batch.returns is not None:
        new, old, returns = (each.cpu().double() for each in (values, batch.values[there], batch.returns[there]))
        inside, clip = share.weights > 0, settings.cliprange_value
        error = value_loss(new, old, returns, inside, clip, share.tokens)
        found.others["value loss"] = settings.vf_coef * float(error)
    return found


@dataclass(frozen=True)
class Question:
    """A direction from some weights, both by name; the completions `rows` that are looked at, int64 on the CPU.

    `pulls` [R, L], float64 on the CPU, is ∂loss/∂ℓ of each token, 0 where it counts for nothing, and `cut` what is left
    of every gradient. All of it together is `known` to change by so much along the direction. `guess` is how much a
    log-probability may change.
    """

    weights: Vector
    direction: Vector
    rows: Tensor
    pulls: Tensor
    cut: float
    known: float
    guess: float


@torch.no_grad()
def along(question: Question, state: State, batch: Batch) -> Along:
    """The changes, at a width at which their sum is what is known; `state` has other weights afterwards."""
    precision = next(iter(question.direction.values())).dtype
    wanted = _WIDE * torch.finfo(precision).eps ** (1 / 3)
    width, best = wanted / max(abs(question.guess), 1e-12), None
    for _ in range(TRIES):
        ahead, behind = (_shifted(question, by, state, batch) for by in (width, -width))
        apart = torch.where(question.pulls != 0, ahead.logprobs - behind.logprobs, 0.0)
        found = _changes(question, apart, ahead.others, behind.others, width)
        best = found if best is None or found.off < best.off else best
        moved = float(apart.abs().max()) / 2
        if best.off <= NEAR[precision] or not moved:
            break
        # Too near, rounding is all that is seen; too far, the way bends.
        width *= wanted / 4 / moved if moved < wanted / _HIDDEN else 0.5
    assert best is not None
    return best


def _changes(
    question: Question, apart: Tensor, ahead: dict[str, float], behind: dict[str, float], width: float
) -> Along:
    each = question.cut / (2 * width)
    tokens = question.pulls * apart * each
    others = {name: (value - behind[name]) * each for name, value in ahead.items()}
    size = max(abs(question.known), _HARDLY * float(tokens.abs().sum()), *map(abs, others.values()), 0.0)
    off = abs(float(tokens.sum()) + sum(others.values()) - question.known)
    return Along(tokens, others, off / (size or 1.0))


def _shifted(question: Question, by: float, state: State, batch: Batch) -> Reading:
    put(state, question.weights)
    for name, direction in question.direction.items():
        parameter = state.parameters[name]
        parameter.add_(direction.to(parameter.device), alpha=by)
    return reading(state, batch, question.rows)
