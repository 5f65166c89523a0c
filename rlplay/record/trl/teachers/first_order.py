"""How steps of AdamW moved a target, to first order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.trace.records import Array

Weights = dict[str, Tensor]


def pull(slope: Tensor, squares: Tensor, setting: Mapping[str, float]) -> Tensor:
    """What a first moment adds to a target by the step, for each of its numbers: −lr·P∘∇q / (1 − β₁ᵗ).

    P = 1/(√(v/(1−β₂ᵗ)) + ε), with v the `squares` after the step, and ∇q the target's `slope` before it.
    """
    first, second = (1 - setting[beta] ** setting["count"] for beta in ("beta1", "beta2"))
    found: Tensor = slope * (-setting["lr"] / first) / ((squares / second).sqrt() + setting["eps"])
    # Where there has never been a gradient nothing moves, and P would be 1/ε.
    return torch.where(squares > 0, found, 0.0)


def dot(one: Tensor, other: Tensor) -> float:
    """The sum of products; the products have the tensors' precision, their sum float64."""
    products = one * other
    return float((products.cpu() if products.device.type == "mps" else products).sum(dtype=torch.float64))


NEAR = 2e-3
"""How far, relative, all changes together may be from what is known of them."""
TRIES = 5
_WANTED = 3 * torch.finfo(torch.float32).eps ** (1 / 3)
"""How far the most moved number goes where rounding and curvature cost alike, about."""
_FAR = 16
"""A distance is too small at which it goes so many times less far."""
_HARDLY = 1 / 5
"""Of sums that cancel, the share of the sum of all absolute values that counts as their size."""


@dataclass
class Difference:
    """How fast the numbers of each pass change along a direction, by a difference in which the most moved went `moved`.

    `off` is how far all together are from what is known of them, relative to it.
    """

    slopes: list[list[Tensor]]
    moved: float
    off: float = 0.0


def along(measure: Callable[[float], Difference], guess: float) -> Difference:
    """The best difference that `measure` takes at a distance; `guess` is how fast a number changes, about."""
    distance, tried = _WANTED / (abs(guess) or 1.0), list[Difference]()
    while len(tried) < TRIES:
        found = measure(distance)
        tried.append(found)
        if found.off <= NEAR or not found.moved:
            break
        # Too near, rounding is all that is seen; too far, the way bends.
        halves = _WANTED / _FAR < found.moved < 2 * _WANTED
        distance *= 0.5 if halves else _WANTED / 4 / found.moved if math.isfinite(found.moved) else 1e-3
    return min(tried, key=lambda each: each.off)


def off_by(parts: Sequence[Array], known: float) -> float:
    """How far the sum of all parts is from what is known of it, relative."""
    total, sizes = sum(float(each.sum()) for each in parts), sum(float(abs(each).sum()) for each in parts)
    return abs(total - known) / (max(abs(known), _HARDLY * sizes) or 1.0)


def apart(
    direction: Weights, base: Weights, distance: float, give: Callable[[Weights], None],
    passes: Sequence[Callable[[], list[Tensor]]],
) -> Difference:  # fmt: skip
    """What each pass gives so far along the direction, and so far against it; `give` replaces the model's weights."""
    ends = list[list[list[Tensor]]]()
    for sign in (1, -1):
        step = {name: torch.add(base[name], each, alpha=sign * distance) for name, each in direction.items()}
        give(base | step)
        ends.append([one() for one in passes])
    changes = [[up.float() - down.float() for up, down in zip(*each, strict=True)] for each in zip(*ends, strict=True)]
    moved = max((float(one.abs().max()) for each in changes for one in each), default=0.0) / 2
    return Difference([[one / (2 * distance) for one in each] for each in changes], moved)
