"""Gradient checkpointing: a layer keeps its input alone and is run again when its gradient is needed.

Chen et al. 2016, arXiv:1604.06174. transformers has its own, which works only in training mode, where dropout would
make two passes over the same tokens disagree; this one works in eval mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer


def layers_of(model: nn.Module) -> list[nn.Module]:
    """The layers of a model of transformers that can be run again, empty if it has none; those inside one are not
    listed."""
    every = [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
    inner = {id(part) for layer in every for part in layer.modules() if part is not layer}
    return [layer for layer in every if id(layer) not in inner]


@contextmanager
def checkpointed(model: Any, again: Callable[[], AbstractContextManager[None]] = nullcontext) -> Iterator[None]:
    """Within it, a pass of `model` keeps only what goes into each layer, which is run again within `again`.

    The pass must not fill a cache: when a layer is run again, its cache would grow a second time.
    """
    layers = layers_of(model)
    for layer in layers:
        layer.forward = partial(
            checkpoint, layer.forward, use_reentrant=False, preserve_rng_state=False,
            context_fn=lambda: (nullcontext(), again()),
        )  # fmt: skip
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward
