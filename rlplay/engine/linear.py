"""Linear layers that let oneDNN compute their large float32 products (`onednn.py`), forwards and backwards.

The derivatives of a product are products, which the same function computes; so second derivatives, which TRPO needs,
are there as well. The class of a layer is changed after loading, and nothing else: parameters and their names, peft's
adapters, copies and saved files are as before.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from rlplay.engine.onednn import ROWS, WORTH, is_faster, multiplied


def use_faster_products(model: nn.Module, device: torch.device) -> None:
    """Let the linear layers of a model on `device` use oneDNN if that is faster there."""
    if device.type == "cpu" and is_faster():
        for module in model.modules():
            if type(module) in _FASTER:  # not a subclass, which may compute something else
                module.__class__ = _FASTER[type(module)]


class FasterLinear(nn.Linear):
    """A linear layer, `weight` [out, in], whose large products oneDNN computes."""

    def forward(self, input: Tensor) -> Tensor:
        """`input` [..., in] times the weight, plus the bias: [..., out]."""
        if is_worth(input, self.weight):
            return linear(input, self.weight, self.bias)
        return super().forward(input)


class FasterConv1D(Conv1D):  # type: ignore[misc]
    """GPT-2's linear layer, `weight` [in, out], whose large products oneDNN computes."""

    def forward(self, x: Tensor) -> Tensor:
        """`x` [..., in] times the weight, plus the bias: [..., out]."""
        if is_worth(x, self.weight):
            return linear(x, self.weight.t(), self.bias)
        found: Tensor = super().forward(x)
        return found


_FASTER: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: FasterLinear, Conv1D: FasterConv1D}


def is_worth(inputs: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN is to multiply these: by their shapes and kinds alone, so that a seed gives the same numbers."""
    rows = inputs.numel() // inputs.shape[-1]
    if rows < ROWS or rows * weight.numel() < WORTH:
        return False
    plain = inputs.dtype is weight.dtype is torch.float32 and inputs.is_cpu and weight.is_cpu
    return plain and not torch.is_autocast_enabled("cpu")


def linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`inputs` [..., k] times `weight` [n, k], transposed, plus `bias` [n], by oneDNN; differentiable any number of
    times."""
    if not torch.is_grad_enabled():
        return multiplied(inputs, weight, bias)
    found: Tensor = _Linear.apply(inputs, weight, bias)  # type: ignore[no-untyped-call]
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        by_input, by_weight, _ = ctx.needs_input_grad
        ctx.save_for_backward(inputs if by_weight else None, weight if by_input else None)
        ctx.save_for_forward(inputs, weight)
        return multiplied(inputs, weight, bias)

    @staticmethod
    def jvp(ctx: Any, inputs: Tensor | None, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        """The derivative along these directions, None for 0."""
        own_inputs, own_weight = ctx.saved_tensors
        found: Tensor = own_inputs.new_zeros(*own_inputs.shape[:-1], len(own_weight))
        if inputs is not None:
            found += multiplied(inputs.contiguous(), own_weight, None)
        if weight is not None:
            found += multiplied(own_inputs, weight.contiguous(), None)
        return found if bias is None else found + bias

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        by_input, by_weight, by_bias = ctx.needs_input_grad
        rows = gradient.reshape(-1, gradient.shape[-1])
        return (
            linear(gradient, weight.t()) if by_input else None,
            linear(rows.t(), inputs.reshape(-1, inputs.shape[-1]).t()) if by_weight else None,
            rows.sum(0) if by_bias else None,
        )
