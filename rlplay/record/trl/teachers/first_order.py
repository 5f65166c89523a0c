"""How steps of AdamW moved a target, to first order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

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


MOVED = 0.03
"""How far the most moved log-probability goes in a central difference, nats. Measured in float32: a tenth of it is lost
in rounding, ten times as much in what is not linear."""
_TRIES = 8


def along(
    direction: Weights, base: Weights, give: Callable[[Weights], None], passes: Sequence[Callable[[], list[Tensor]]],
    go_on: Callable[[], None],
) -> list[list[Tensor]]:  # fmt: skip
    """How fast the numbers of each pass change as the weights leave `base` along `direction`: a central difference.

    `give` replaces the model's weights; `go_on` raises if it is no longer wanted. The distance is that at which the
    most moved number of the first pass that moves changes by `MOVED`.
    """
    distance = _distance(direction, base, give, passes, go_on)
    found = []
    for one in passes:
        go_on()
        found.append([each / (2 * distance) for each in _apart(direction, base, distance, give, one)])
    return found


def _distance(
    direction: Weights, base: Weights, give: Callable[[Weights], None], passes: Sequence[Callable[[], list[Tensor]]],
    go_on: Callable[[], None],
) -> float:  # fmt: skip
    size = _length(direction)
    if not size:
        return 1.0
    distance = 1e-4 * _length(base) / size
    for one in passes:
        for _ in range(_TRIES):
            go_on()
            moved = max(float(each.abs().max()) / 2 for each in _apart(direction, base, distance, give, one))
            if not moved:
                break  # a pass that the direction does not reach
            if MOVED / 3 < moved < 3 * MOVED:
                return distance
            distance *= MOVED / moved if math.isfinite(moved) else 0.1
        else:
            return distance
    return distance


def _apart(
    direction: Weights, base: Weights, distance: float, give: Callable[[Weights], None], one: Callable[[], list[Tensor]]
) -> list[Tensor]:
    """What a pass gives so far along the direction, minus what it gives so far against it."""
    ends = []
    for sign in (1, -1):
        give({name: torch.add(each.to(direction[name]), direction[name], alpha=sign * distance) if name in direction
              else each for name, each in base.items()})  # fmt: skip
        ends.append(one())
    return [up.float() - down.float() for up, down in zip(*ends, strict=True)]


def _length(weights: Weights) -> float:
    return math.sqrt(sum(dot(each, each) for each in weights.values()))
