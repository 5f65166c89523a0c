"""What a step of AdamW did to a number that the weights make, to first order: for the engine and for other trainers.

It imports torch, so nothing that a screen needs imports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

Vector = dict[str, Tensor]
"""A number for every trained weight, by its name; weights that are not named have 0."""

FORGOTTEN = 200
"""Steps after which Adam has kept less than a billionth of a gradient, with its usual β₁ of .9."""
WIDTHS = 6
"""That are tried, at most; each costs two passes."""
NEAR = {torch.float64: 1e-7, torch.float32: 2e-3}
"""How far, relative, what all tokens did may be from what is known of it, by the precision of the weights."""
_WIDE = 3.0
"""A width moves log-probabilities by about this many times ∛ε, where rounding and curvature cost alike."""
_FAR = 16
"""A width that moves so many times less than that is too small."""
_UNSEEN = 256
"""And one that moves so many times less shows rounding, whose large numbers cancel as if they were right."""
_HARDLY = 1 / 5
"""Of sums that cancel, the share of the sum of all absolute values that counts as their size."""


def step_sizes(second: Tensor, rate: float, betas: tuple[float, float], eps: float, steps: float) -> Tensor:
    """−lr·(1−β₁)/(1−β₁ᵗ)·P: what AdamW makes of each number of the gradient of a weight's step t, which is `steps`.

    P = 1/(√(v/(1−β₂ᵗ)) + ε), with v the `second` moment after the step (Loshchilov and Hutter 2019, arXiv:1711.05101).
    """
    size = 1 / ((second / (1 - betas[1] ** steps)).sqrt() + eps)
    # Where there has never been a gradient nothing has moved, and P would be 1/ε.
    size = torch.where(second > 0, size, 0.0)
    return size.mul_(-rate * (1 - betas[0]) / (1 - betas[0] ** steps))


def gradient_taken(before: Tensor, after: Tensor, beta1: float) -> Tensor:
    """The gradient that a step was given, by the first moment before and after it."""
    return (after - beta1 * before) / (1 - beta1)


def dot(a: Vector, b: Vector) -> float:
    """Σ a·b over the weights that both have, added up in float64."""
    return math.fsum(_dot(a[name], b[name]) for name in a if name in b)


def _dot(a: Tensor, b: Tensor) -> float:
    if a.device.type == "mps":  # which has no float64
        a, b = a.cpu(), b.cpu()
    return float((a * b).sum(dtype=torch.float64))


class Difference(Protocol):
    """What a width shows: how far the whole is from what is known of it, and how far the most moved number went."""

    @property
    def off(self) -> float:
        """Relative; see `off_by`."""

    @property
    def moved(self) -> float:
        """To one side."""


D = TypeVar("D", bound=Difference)


def best_difference(
    measure: Callable[[float], D], precision: torch.dtype, guess: float, exact: Callable[[], D | None] = lambda: None
) -> D:
    """The best difference that `measure` takes at a width; if the first is not good, `exact` may know better.

    `precision` is that of the weights; `guess` is how much a number may change in a width of 1.
    """
    wanted = _WIDE * torch.finfo(precision).eps ** (1 / 3)

    def unseen(found: D) -> bool:
        return found.moved < wanted / _UNSEEN and found.off > 0

    width, tried = wanted / guess, list[D]()
    while len(tried) < WIDTHS:
        found = measure(width)
        tried.append(found)
        if found.off <= NEAR[precision] and not unseen(found):
            break
        if len(tried) == 1 and (better := exact()) is not None:
            return better
        # Too near, rounding is all that is seen, or nothing moves at all; too far, the way bends.
        there = max(found.moved, wanted / 1e3) if math.isfinite(found.moved) else 1e3 * wanted
        width *= 0.5 if wanted / _FAR < there < wanted * 2 else wanted / 4 / there
    return min(tried, key=lambda each: (unseen(each), each.off))


def off_by(total: float, known: float, sizes: float, others: tuple[float, ...] = ()) -> float:
    """How far a sum is from what is known of it, relative: to that, or to what it would be if less of it cancelled.

    `sizes` is the sum of all its tokens without their signs; `others` are the parts that are no token's.
    """
    size = max(abs(known), _HARDLY * sizes, *map(abs, others), 0.0)
    return abs(total - known) / (size or 1.0)
