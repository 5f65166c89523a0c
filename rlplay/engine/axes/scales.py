"""What advantages are divided by."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine.axes.baselines import group_statistics, moments

STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards before dividing, as TRL does; it decides nearly equal rewards."""

WHITEN_EPSILON = 1e-8
"""Added to the variance when whitening, as TRL's PPO did."""


def group_std(outcomes: Tensor, group: Tensor) -> Tensor:
    """Standard deviation (ddof = 1) of the outcomes [N] within each completion's group, plus epsilon: [N]."""
    _, std = group_statistics(outcomes, group, int(group.max()) + 1)
    return std[group] + STD_EPSILON


def batch_std(outcomes: Tensor) -> Tensor:
    """Standard deviation (ddof = 1) of the outcomes [N] over the batch, plus epsilon: [N]."""
    return group_std(outcomes, torch.zeros_like(outcomes, dtype=torch.long))


def whiten(advantages: Tensor, mask: Tensor) -> Tensor:
    """Advantages [N, L] shifted and scaled to mean 0 and variance 1 over all sampled tokens (ddof = 1)."""
    chosen = advantages[mask]
    mean, variance = moments(chosen, torch.zeros_like(chosen, dtype=torch.long), 1)
    return (advantages - mean) * (variance + WHITEN_EPSILON).rsqrt() * mask
