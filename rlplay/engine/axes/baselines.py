"""What a completion's return is compared with, and the spread of groups."""

from __future__ import annotations

import torch
from torch import Tensor


def group_statistics(rewards: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (ddof = 1) of the known rewards [N] of each group: two [groups].

    NaN counts as not known; the std of a single reward is 0, and so are both of a group without any.
    """
    known = ~rewards.isnan()
    values = rewards.nan_to_num()

    def total(of: Tensor) -> Tensor:
        return values.new_zeros(groups).index_add(0, group, of)

    count = total(known.to(values.dtype))
    mean = total(values) / count.clamp(min=1)
    squares = total(((values - mean[group]) * known) ** 2)
    return mean, (squares / (count - 1).clamp(min=1)).sqrt()


def batch_mean(outcomes: Tensor) -> Tensor:
    """The mean outcome of the batch for every completion: [N] -> [N]."""
    return outcomes.mean().expand_as(outcomes)


def group_mean(outcomes: Tensor, group: Tensor) -> Tensor:
    """The mean outcome of a completion's group, itself included (Shao et al. 2024, arXiv:2402.03300): [N] -> [N]."""
    mean, _ = group_statistics(outcomes, group, int(group.max()) + 1)
    return mean[group]


def leave_one_out(outcomes: Tensor, group: Tensor) -> Tensor:
    """The mean outcome of a completion's siblings, (ΣR − R_i)/(n − 1); its own outcome if it has none: [N] -> [N].

    Ahmadian et al. 2024, arXiv:2402.14740.
    """
    ones = torch.ones_like(outcomes)
    count, total = _sums(ones, group), _sums(outcomes, group)
    return torch.where(count[group] > 1, (total[group] - outcomes) / (count[group] - 1).clamp(min=1), outcomes)


def length_weighted(outcomes: Tensor, lengths: Tensor, group: Tensor) -> Tensor:
    """Σ n_i R_i / Σ n_i over a completion's group (OPO, arXiv:2505.23585): [N] -> [N]."""
    lengths = lengths.to(outcomes.dtype)
    return (_sums(outcomes * lengths, group) / _sums(lengths, group).clamp(min=1))[group]


def _sums(values: Tensor, group: Tensor) -> Tensor:
    return values.new_zeros(int(group.max()) + 1).index_add(0, group, values)
