"""torch's AdamW as a trainer holds it: the trained weights by name, and what its next step will be made of."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Adam:
    """The trained weights of an optimizer, their moments, and the settings of their groups."""

    def __init__(self, optimizer: Any) -> None:
        """`optimizer` is torch's AdamW, or accelerate's wrapper of it."""
        self._optimizer = getattr(optimizer, "optimizer", optimizer)
        self.parameters: dict[str, nn.Parameter] = {}
        self._groups: dict[str, dict[str, Any]] = {}
        for number, group in enumerate(self._optimizer.param_groups):
            for place, parameter in enumerate(group["params"]):
                if parameter.requires_grad:
                    self.parameters[f"{number}.{place}"] = parameter
                    self._groups[f"{number}.{place}"] = group

    @property
    def numbers(self) -> int:
        """How many are trained."""
        return sum(each.numel() for each in self.parameters.values())

    def moving(self) -> list[str]:
        """The weights that the step at hand moves: those with a gradient."""
        return [name for name, each in self.parameters.items() if each.grad is not None]

    def moment(self, name: str, which: str) -> Tensor:
        """The moment "exp_avg" or "exp_avg_sq" of a weight; 0 before its first step."""
        parameter = self.parameters[name]
        found: Tensor | None = self._optimizer.state.get(parameter, {}).get(which)
        return torch.zeros_like(parameter) if found is None else found

    def count(self, name: str) -> float:
        """The steps that a weight has taken."""
        return float(self._optimizer.state.get(self.parameters[name], {}).get("step", 0))

    def setting(self, name: str, which: str) -> Any:
        """A setting of a weight's group."""
        return self._groups[name][which]
