"""Log-probabilities of some tokens, without one number more per token of the vocabulary than the model gives.

What autograd would keep of a softmax, and the gradients of its steps, are as large as the logits themselves, which are
the largest thing of a pass where the vocabulary is large.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def logprobs_at(logits: Tensor, places: Tensor, ids: Tensor, temperature: float) -> Tensor:
    """log softmax(logits[place] / temperature) at an id: logits [n, V], places and ids int64 [m] -> float32 [m]."""
    found: Tensor = _LogProbs.apply(logits, places, ids, temperature)  # type: ignore[no-untyped-call]
    return found


class _LogProbs(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: Tensor, places: Tensor, ids: Tensor, temperature: float) -> Tensor:
        scaled = _scaled(logits, temperature)
        whole, entries = scaled.logsumexp(-1), places * logits.shape[-1] + ids
        context.save_for_backward(logits, places, entries, whole)
        context.save_for_forward(logits, places, entries, whole)
        context.temperature = temperature
        return scaled.view(-1)[entries] - whole[places]

    @staticmethod
    def jvp(context: Any, direction: Tensor, *_: None) -> Tensor:
        """The derivative along a direction of the logits: its entry less its mean under the distribution."""
        logits, places, entries, whole = context.saved_tensors
        along = _scaled(direction, context.temperature)
        mean = ((_scaled(logits, context.temperature) - whole[:, None]).exp_() * along).sum(-1)
        found: Tensor = along.view(-1)[entries] - mean[places]
        return found

    @staticmethod
    @once_differentiable
    def backward(context: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
        """The derivative of log p_i by logit j is ([i = j] - p_j) / temperature."""
        logits, places, entries, whole = context.saved_tensors
        slope = slope / context.temperature
        found = (_scaled(logits, context.temperature) - whole[:, None]).exp_()
        found *= -slope.new_zeros(len(logits)).index_add_(0, places, slope)[:, None]
        found.view(-1).index_add_(0, entries, slope)
        return found.to(logits.dtype), None, None, None


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    return widened(logits) if temperature == 1 else widened(logits) / temperature


def widened(values: Tensor) -> Tensor:
    """The values in float32, or as they are if they are finer."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
