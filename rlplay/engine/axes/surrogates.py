"""The objective per token, as a loss: what is minimised is its aggregate."""

from __future__ import annotations

import torch
from torch import Tensor


def logp(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """−A·ℓ, the plain policy gradient (Williams 1992). All [N, L]."""
    return -advantages * logprobs


def ppo(ratio: Tensor, advantages: Tensor, epsilon: float, epsilon_high: float) -> Tensor:
    """−min(w·A, clip(w, 1 − ε, 1 + ε_high)·A) (Schulman et al. 2017, arXiv:1707.06347, equation 7). All [N, L]."""
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon_high)
    return -torch.min(ratio * advantages, clipped * advantages)


def clip_state(ratio: Tensor, advantages: Tensor, epsilon: float, epsilon_high: float) -> Tensor:
    """Where `ppo` has gradient exactly 0: +1 (A > 0, w > 1 + ε_high), −1 (A < 0, w < 1 − ε), else 0. int8 [N, L]."""
    high = (advantages > 0) & (ratio > 1 + epsilon_high)
    low = (advantages < 0) & (ratio < 1 - epsilon)
    return high.to(torch.int8) - low.to(torch.int8)
