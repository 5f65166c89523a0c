"""What a completion's return is compared with, and the spread of groups.

Every mean here is taken of what values are above the lowest of their group. So the mean of equal values is that value
exactly, however their sum would be rounded, and their spread is exactly 0: a group of equal rewards has no signal,
whichever baseline and scale are chosen.
"""

from __future__ import annotations

import torch
from torch import Tensor


def moments(values: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and variance (ddof = 1) of the known values [N] of each group: two [groups].

    NaN counts as not known; the variance of a single value is 0, and so are both of a group without any.
    """
    known = (~values.isnan()).to(values.dtype)
    mean = _mean(values.nan_to_num(), known, group, groups)
    squares = _sums(known * (values.nan_to_num() - mean[group]) ** 2, group, groups)
    return mean, squares / (_sums(known, group, groups) - 1).clamp(min=1)


def group_statistics(rewards: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (ddof = 1) of the known rewards [N] of each group: two [groups], as `moments`."""
    mean, variance = moments(rewards, group, groups)
    return mean, variance.sqrt()


def batch_mean(outcomes: Tensor) -> Tensor:
    """The mean outcome of the batch for every completion: [N] -> [N]."""
    return group_mean(outcomes, torch.zeros_like(outcomes, dtype=torch.long))


def group_mean(outcomes: Tensor, group: Tensor) -> Tensor:
    """The mean outcome of a completion's group, itself included (Shao et al. 2024, arXiv:2402.03300): [N] -> [N]."""
    return _mean(outcomes, torch.ones_like(outcomes), group, _count(group))[group]


def leave_one_out(outcomes: Tensor, group: Tensor) -> Tensor:
    """The mean outcome of a completion's siblings, (ΣR − R_i)/(n − 1); its own outcome if it has none: [N] -> [N].

    Ahmadian et al. 2024, arXiv:2402.14740.
    """
    mean = group_mean(outcomes, group)
    siblings = _sums(torch.ones_like(outcomes), group, _count(group))[group] - 1
    return mean + (mean - outcomes) / siblings.clamp(min=1)


def length_weighted(outcomes: Tensor, lengths: Tensor, group: Tensor) -> Tensor:
    """Σ n_i R_i / Σ n_i over a completion's group (OPO, arXiv:2505.23585): [N] -> [N]."""
    return _mean(outcomes, lengths.to(outcomes.dtype), group, _count(group))[group]


def _mean(values: Tensor, weights: Tensor, group: Tensor, groups: int) -> Tensor:
    """Σ weight·value / Σ weight of each group, [groups]; weights are 0 or at least 1, and 0 of a group without any."""
    counted = weights > 0
    lowest = values.new_full((groups,), torch.inf)
    lowest = lowest.scatter_reduce(0, group, values.where(counted, torch.inf), "amin").nan_to_num(posinf=0.0)
    above = (values - lowest[group]).where(counted, 0.0)
    return lowest + _sums(weights * above, group, groups) / _sums(weights, group, groups).clamp(min=1)


def _sums(values: Tensor, group: Tensor, groups: int) -> Tensor:
    return values.new_zeros(groups).index_add(0, group, values)


def _count(group: Tensor) -> int:
    return int(group.max()) + 1
