"""How the numbers of a trainer's passes change along a direction in the space of the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.first_order import Vector


@dataclass
class Difference:
    """How fast the numbers of each pass change along a direction, by a difference in which the most moved went `moved`.

    `off` is how far all together are from what is known of them, relative to it.
    """

    slopes: list[list[Tensor]]
    moved: float
    off: float = 0.0


def apart(
    direction: Vector, base: Vector, width: float, give: Callable[[Vector], None],
    passes: Sequence[Callable[[], list[Tensor]]],
) -> Difference:  # fmt: skip
    """What each pass gives so far along the direction, and so far against it; `give` replaces the model's weights."""
    ends = list[list[list[Tensor]]]()
    for sign in (1, -1):
        step = {name: torch.add(base[name], each, alpha=sign * width) for name, each in direction.items()}
        give(base | step)
        ends.append([one() for one in passes])
    changes = [[up.float() - down.float() for up, down in zip(*each, strict=True)] for each in zip(*ends, strict=True)]
    moved = max((float(one.abs().max()) for each in changes for one in each), default=0.0) / 2
    return Difference([[one / (2 * width) for one in each] for each in changes], moved)
