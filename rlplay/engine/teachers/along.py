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
from rlplay.engine.teachers.reading import KL, Reading, reading
from rlplay.first_order import Vector, best_difference, off_by


@dataclass
class Along:
    """What the `tokens` [R, L], float64 on the CPU, and the `others` of a loss change along a direction.

    `off` is how far their sum is from what is known of it, relative to it; `moved` how far the most moved token went.
    """

    tokens: Tensor
    others: dict[str, float]
    off: float
    moved: float = 0.0


@dataclass(frozen=True)
class Question:
    """A direction from some weights, both by name; the completions `rows` that are looked at, int64 on the CPU.

    `pulls` [R, L], float64 on the CPU, is ∂loss/∂ℓ of each token, 0 where it counts for nothing; `held`, None for 0, is
    the part of it that comes from a KL in the loss and is no credit of the token. `cut` is what is left of every
    gradient. All of it together is `known` to change by so much along the direction. `guess` is how much a
    log-probability may change.
    """

    weights: Vector
    direction: Vector
    rows: Tensor
    pulls: Tensor
    held: Tensor | None
    cut: float
    known: float
    guess: float


@torch.no_grad()
def along(question: Question, state: State, batch: Batch) -> Along:
    """The changes, as a pass of the state with other weights computes them."""

    def measure(width: float) -> Along:
        apart = _difference(*(_shifted(question, by, state, batch) for by in (width, -width)))
        found = _changes(question, {name: change / (2 * width) for name, change in apart.items()})
        found.moved = float(torch.where(question.pulls != 0, apart[""], 0.0).abs().max()) / 2
        return found

    precision = next(iter(question.direction.values())).dtype
    return best_difference(measure, precision, question.guess, lambda: _exactly(question, state, batch))


def _changes(question: Question, found: Mapping[str, Tensor]) -> Along:
    """What derivatives come to: those of the log-probabilities have no name, the others theirs."""
    each = question.cut * torch.where(question.pulls != 0, found[""], 0.0)
    tokens = question.pulls * each
    others = {name: question.cut * float(change) for name, change in found.items() if name}
    if question.held is not None:
        others[KL] = others.get(KL, 0.0) + float((question.held * each).sum())
        tokens = (question.pulls - question.held) * each
    total = float(tokens.sum()) + sum(others.values())
    off = off_by(total, question.known, float(tokens.abs().sum()), (*others.values(),))
    return Along(tokens, others, off)


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
