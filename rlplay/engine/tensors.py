"""The array namespace of the algorithms for torch: see `rlplay.algorithms.arrays`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rlplay.algorithms import statistics
from rlplay.algorithms.arrays import LOG_HALF


class Tensors:
    """The namespace for tensors of one precision and device, those of `like`; gradients flow through all of it."""

    exp = staticmethod(torch.exp)
    log = staticmethod(torch.log)
    expm1 = staticmethod(torch.expm1)
    log1p = staticmethod(torch.log1p)
    sqrt = staticmethod(torch.sqrt)
    tanh = staticmethod(torch.tanh)
    abs = staticmethod(torch.abs)
    sigmoid = staticmethod(torch.sigmoid)
    relu = staticmethod(torch.relu)
    logsigmoid = staticmethod(logsigmoid)
    rsqrt = staticmethod(torch.rsqrt)
    isnan = staticmethod(torch.isnan)
    quantile = staticmethod(torch.quantile)
    zeros_like = staticmethod(torch.zeros_like)
    ones_like = staticmethod(torch.ones_like)

    def __init__(self, like: Tensor) -> None:
        self._like = like

    def _tensor(self, x: Any) -> Tensor:
        return x if isinstance(x, Tensor) else self._like.new_full((), x)

    def where(self, condition: Tensor, yes: Any, no: Any) -> Tensor:
        """`yes` where the condition holds, `no` elsewhere."""
        return torch.where(condition, self._tensor(yes), self._tensor(no))

    def minimum(self, x: Any, y: Any) -> Tensor:
        """The smaller of each two."""
        return torch.minimum(self._tensor(x), self._tensor(y))

    def maximum(self, x: Any, y: Any) -> Tensor:
        """The larger of each two."""
        return torch.maximum(self._tensor(x), self._tensor(y))

    @staticmethod
    def clip(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor:
        """`x` held between the bounds."""
        return x if low is None and high is None else x.clamp(low, high)

    @staticmethod
    def stop_gradient(x: Tensor) -> Tensor:
        """`x` as a constant."""
        return x.detach()

    @staticmethod
    def let(_name: str, x: Tensor) -> Tensor:
        """`x`, which the equation calls by a name."""
        return x

    @staticmethod
    def sum_over(x: Tensor, mask: Tensor) -> Tensor:
        """The sum over each completion's sampled tokens, [..., 1]."""
        return (x * mask).sum(-1, keepdim=True)

    @staticmethod
    def mean_over(x: Tensor, mask: Tensor) -> Tensor:
        """The mean over each completion's sampled tokens, [..., 1]."""
        return (x * mask).sum(-1, keepdim=True) / mask.sum(-1, keepdim=True).clamp(min=1)

    @staticmethod
    def count_over(mask: Tensor) -> Tensor:
        """How many sampled tokens each completion has, [..., 1]."""
        return mask.sum(-1, keepdim=True)

    @staticmethod
    def ranked(x: Tensor, by: Tensor) -> Tensor:
        """For each of `by` [P] the `x` [P] of its rank: where `by` has its k-th smallest, the k-th smallest of `x`."""
        return x.sort().values[by.argsort(stable=True).argsort()]

    @staticmethod
    def log_odds(logprob: Tensor) -> Tensor:
        """log(p/(1 − p)) of p = exp(logprob), accurate for every p."""
        rest = torch.where(logprob < LOG_HALF, torch.log1p(-logprob.exp()), torch.log(-torch.expm1(logprob)))
        return logprob - rest

    def group_mean(self, x: Tensor, group: Tensor) -> Tensor:
        """The mean over the completions of the same prompt: [N]."""
        mean: Tensor = statistics.group_mean(self, x, group)
        return mean

    def group_std(self, x: Tensor, group: Tensor) -> Tensor:
        """The standard deviation (ddof = 1) over the completions of the same prompt: [N]."""
        std: Tensor = statistics.group_std(self, x, group)
        return std

    @staticmethod
    def sum_by(x: Tensor, group: Tensor, groups: int) -> Tensor:
        """The sum of `x` [N] in each group: [groups]."""
        return x.new_zeros(groups).index_add(0, group, x)

    @staticmethod
    def lowest_by(x: Tensor, counted: Tensor, group: Tensor, groups: int) -> Tensor:
        """The lowest counted `x` [N] of each group, 0 of a group without any: [groups]."""
        lowest = x.new_full((groups,), torch.inf)
        return lowest.scatter_reduce(0, group, x.where(counted, torch.inf), "amin").nan_to_num(posinf=0.0)

    @staticmethod
    def cumsum(x: Tensor) -> Tensor:
        """Sums along each completion."""
        return x.cumsum(-1)

    @staticmethod
    def places(x: Tensor) -> Tensor:
        """0, 1, …: the place of each token of `x` [N, L], int64 [L]."""
        return torch.arange(x.shape[-1], device=x.device)

    @staticmethod
    def indices_like(x: Tensor) -> Tensor:
        """Zeros as group numbers, int64 [N]."""
        return torch.zeros_like(x, dtype=torch.long)


def group_statistics(values: Tensor, group: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of the known values [N] of each group: see `rlplay.algorithms.statistics`."""
    mean, std = statistics.group_statistics(Tensors(values), values, group, groups)
    return mean, std
