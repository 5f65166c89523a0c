"""AdamW for weights in bfloat16, whose eight bits would lose most of a small step.

At a learning rate of 1e-6 Adam changes a weight by about 1e-6, but the next bfloat16 after 0.01 is 6e-5 away. So each
such weight has a float32 master that takes the steps; the model gets it rounded (Micikevicius et al. 2017,
arXiv:1710.03740).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.optim.adamw import adamw


class MasterAdamW(torch.optim.Optimizer):
    """As `torch.optim.AdamW`, with a float32 "master" of every weight beside its moments, which are float32, too."""

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "betas": (0.9, 0.999), "eps": 1e-8})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        """One step of every weight that has a gradient; one weight at a time, so that few are in float32 twice."""
        assert closure is None
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    master = parameter.detach().float().clone()
                    moments = {name: torch.zeros_like(master) for name in ("exp_avg", "exp_avg_sq")}
                    state |= {"master": master, "step": torch.zeros((), device=master.device)} | moments
                adamw(
                    [state["master"]], [parameter.grad.float()], [state["exp_avg"]], [state["exp_avg_sq"]], [],
                    [state["step"]], fused=True, amsgrad=False, beta1=beta1, beta2=beta2, lr=group["lr"],
                    weight_decay=group["weight_decay"], eps=group["eps"], maximize=False,
                )  # fmt: skip
                parameter.copy_(state["master"])
