"""A model whose weights are coarse, for passes in float32 that are compared with each other.

bfloat16 rounds by more than a little change of the weights does. No second model is made: each module has its weights
in float32 while its own pass lasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def in_float32(model: nn.Module) -> Iterator[None]:
    """Passes without gradients are then in float32 outside autocast; the weights are as before afterwards."""
    coarse = {module: own for module in model.modules() if (own := _coarse(module))}
    before = {parameter: parameter.data for own in coarse.values() for parameter in own}
    handles = []

    def widen(module: nn.Module, *_: Any) -> None:
        for parameter in coarse[module]:
            parameter.data = before[parameter].float()

    def narrow(module: nn.Module, *_: Any) -> None:
        for parameter in coarse[module]:
            parameter.data = before[parameter]

    try:
        for module in coarse:
            if isinstance(module, nn.Embedding):  # its rows are exact as they are, and all of them are many
                handles.append(module.register_forward_hook(_widened))
            else:
                handles.append(module.register_forward_pre_hook(widen))
                handles.append(module.register_forward_hook(narrow, always_call=True))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for parameter, data in before.items():
            parameter.data = data


def _coarse(module: nn.Module) -> list[nn.Parameter]:
    own = module.parameters(recurse=False)
    return [each for each in own if each.is_floating_point() and each.dtype != torch.float32]


def _widened(_module: nn.Module, _values: Any, out: Tensor) -> Tensor:
    return out.float()
