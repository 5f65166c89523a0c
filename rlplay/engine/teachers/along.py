"""How a batch's log-probabilities, and what else a loss reads, change along a direction in the space of the weights.

All tokens at once, by two passes without gradients: the difference between a little ahead and a little behind. What
all of them together change is known, which says whether the difference is good. If not, a pass in forward mode is
exact, at twice the cost; a model that has none gets other widths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel

from rlplay.engine.batch import Batch
from rlplay.engine.out_of_memory import is_out_of_memory
from rlplay.engine.state import State
from rlplay.engine.teachers.lent import lent
from rlplay.engine.teachers.reading import Reading, reading
from rlplay.engine.teachers.steps_taken import Vector

WIDTHS = 6
"""That are tried, at most; each costs two passes."""
NEAR = {torch.float64: 1e-7, torch.float32: 2e-3}
"""How far, relative, what all tokens did may be from what is known of it, by the precision of the weights."""
_WIDE = 3.0
"""A width moves log-probabilities by about this many times ∛ε, where rounding and curvature cost alike."""
_FAR = 16
"""A width that moves so many times less than that is too small."""
_HARDLY = 1 / 5
"""Of sums that cancel, the share of the sum of all absolute values that counts as their size."""


@dataclass
class Along:
    """What the `tokens` [R, L], float64 on the CPU, and the `others` of a loss change along a direction.

    `off` is how far their sum is from what is known of it, relative to it.
    """

    tokens: Tensor
    others: dict[str, float]
    off: float


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
    """The changes, as a pass of the state with other weights computes them."""
    precision = next(iter(question.direction.values())).dtype
    wanted = _WIDE * torch.finfo(precision).eps ** (1 / 3)
    width, tried = wanted / question.guess, list[Along]()
    while len(tried) < WIDTHS:
        apart = _difference(*(_shifted(question, by, state, batch) for by in (width, -width)))
        tried.append(_changes(question, {name: change / (2 * width) for name, change in apart.items()}))
        moved = float(torch.where(question.pulls != 0, apart[""], 0.0).abs().max()) / 2
        if tried[-1].off <= NEAR[precision] or not moved:
            break
        if len(tried) == 1 and (exact := _exactly(question, state, batch)) is not None:
            return exact
        # Too near, rounding is all that is seen; too far, the way bends.
        width *= 0.5 if wanted / _FAR < moved < wanted * 2 else wanted / 4 / moved
    return min(tried, key=lambda each: each.off)


def _changes(question: Question, found: Mapping[str, Tensor]) -> Along:
    """What derivatives come to: those of the log-probabilities have no name, the others theirs."""
    tokens = question.cut * torch.where(question.pulls != 0, question.pulls * found[""], 0.0)
    others = {name: question.cut * float(change) for name, change in found.items() if name}
    size = max(abs(question.known), _HARDLY * float(tokens.abs().sum()), *map(abs, others.values()), 0.0)
    off = abs(float(tokens.sum()) + sum(others.values()) - question.known)
    return Along(tokens, others, off / (size or 1.0))


def _difference(ahead: Reading, behind: Reading) -> dict[str, Tensor]:
    return {"": ahead.logprobs - behind.logprobs} | {n: each - behind.others[n] for n, each in ahead.others.items()}


def _exactly(question: Question, state: State, batch: Batch) -> Along | None:
    """The changes in forward mode, which every operation of a pass has to know; None if one does not."""
    there = {name: each.to(state.lm.device) for name, each in question.direction.items()}
    try:
        # Only its plain form of attention knows the mode. Products in oneDNN know it where gradients are enabled.
        with forward_ad.dual_level(), sdpa_kernel(SDPBackend.MATH), torch.enable_grad():
            weights = {name: weight.detach().to(state.lm.device) for name, weight in question.weights.items()}
            weights |= {name: _dual(weights[name], each) for name, each in there.items()}
            other = lent(state, weights)
            found = reading(replace(other, lm=replace(other.lm, checkpointing=False)), batch, question.rows)
            return _changes(question, {"": _slope(found.logprobs)} | {n: _slope(x) for n, x in found.others.items()})
    except (NotImplementedError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        return None


def _dual(value: Tensor, direction: Tensor) -> Tensor:
    found: Tensor = forward_ad.make_dual(value, direction)  # type: ignore[no-untyped-call]
    return found


def _slope(value: Tensor) -> Tensor:
    slope: Tensor | None = forward_ad.unpack_dual(value).tangent  # type: ignore[no-untyped-call]
    return torch.zeros_like(value) if slope is None else slope.detach()


def _shifted(question: Question, by: float, state: State, batch: Batch) -> Reading:
    moved = {name: question.weights[name].add(v, alpha=by) for name, v in question.direction.items()}
    return reading(lent(state, question.weights | moved), batch, question.rows)
