"""What a completion's return is compared with, and the spread of groups."""

from __future__ import annotations

import torch
from torch import Tensor


def group_statistics(rewards: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (ddof = 1) of the rewards [N] of each group: two [groups]; std 0 for a single one."""
    count = torch.zeros(groups, dtype=rewards.dtype, device=rewards.device).index_add(
        0, group, torch.ones_like(rewards)
    )
    mean = torch.zeros_like(count).index_add(0, group, rewards) / count
    squares = torch.zeros_like(count).index_add(0, group, (rewards - mean[group]) ** 2)
    return mean, (squares / (count - 1).clamp(min=1)).sqrt()


def batch_mean(outcomes: Tensor) -> Tensor:
    """The mean outcome of the batch for every completion: [N] -> [N]."""
    return outcomes.mean().expand_as(outcomes)


def group_mean(outcomes: Tensor, group: Tensor) -> Tensor:
    """The mean outcome of a completion's group, itself included (Shao et al. 2024, arXiv:2402.03300): [N] -> [N]."""
    mean, _ = group_statistics(outcomes, group, int(group.max()) + 1)
    return mean[group]
