"""AdamW for weights in bfloat16, whose eight bits would lose most of a small step.

At a learning rate of 1e-6 Adam changes a weight by about 1e-6, but the next bfloat16 after 0.01 is 6e-5 away. So each
such weight has a float32 master that takes the steps; the model gets it rounded (Micikevicius et al. 2017,
arXiv:1710.03740).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

_AT_ONCE = 2**24
"""Weights whose gradients are in float32 at once: 64 MB."""


class MasterAdamW(torch.optim.Optimizer):
    """As `torch.optim.AdamW`, with a float32 "master" of every weight beside its moments, which are float32, too."""

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "betas": (0.9, 0.999), "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One step of every weight that has a gradient; some at a time, so that few are in float32 twice."""
        assert closure is None
        for group in self.param_groups:
            for some in _parts([parameter for parameter in group["params"] if parameter.grad is not None]):
                self._move(some, group)

    def _move(self, some: list[Tensor], group: dict[str, Any]) -> None:
        """A step of some weights. Each tensor by itself would be four launches of a GPU's kernels for each."""
        states = [self._state_of(parameter) for parameter in some]
        gradients = torch.cat([parameter.grad.flatten() for parameter in some if parameter.grad is not None]).float()
        masters, averages, squares, steps = (
            [state[name] for state in states] for name in ("master", "exp_avg", "exp_avg_sq", "step")
        )
        pieces = torch.split(gradients, [parameter.numel() for parameter in some])
        beta1, beta2 = group["betas"]
        adamw(
            masters, [piece.view_as(master) for piece, master in zip(pieces, masters, strict=True)], averages, squares,
            [], steps, fused=True, amsgrad=False, beta1=beta1, beta2=beta2, lr=group["lr"],
            weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
        )  # fmt: skip
        for parameter, master in zip(some, masters, strict=True):
            parameter.copy_(master)

    def _state_of(self, parameter: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            master = parameter.detach().float().clone()
            state |= {"master": master, "step": torch.zeros((), device=master.device)}
            state |= {name: torch.zeros_like(master) for name in ("exp_avg", "exp_avg_sq")}
        return state


def _parts(parameters: list[Tensor]) -> Iterator[list[Tensor]]:
    """Neighbours of at most `_AT_ONCE` weights together, or one that has more."""
    some, count = list[Tensor](), 0
    for parameter in parameters:
        if some and count + parameter.numel() > _AT_ONCE:
            yield some
            some, count = [], 0
        some.append(parameter)
        count += parameter.numel()
    if some:
        yield some
