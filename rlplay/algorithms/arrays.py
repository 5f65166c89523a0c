"""The array namespace of the algorithms, for numpy: `xp` in every function of this package.

A choice's computation uses only arithmetic, comparisons and `xp`. So one function serves three purposes: the engine
runs it on torch tensors with gradients (`rlplay.engine.tensors`), the screen runs it on recorded numpy arrays, and
`symbols.py` makes an equation of it. A completion is always a row [..., L], and `mask` is True for the tokens that the
policy sampled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.algorithms import statistics

LOG_HALF = -0.6931471805599453


class NumpyArrays:
    """The namespace for numpy arrays and plain numbers."""

    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    expm1 = staticmethod(np.expm1)
    log1p = staticmethod(np.log1p)
    sqrt = staticmethod(np.sqrt)
    tanh = staticmethod(np.tanh)
    abs = staticmethod(np.abs)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    where = staticmethod(np.where)
    quantile = staticmethod(np.quantile)
    isnan = staticmethod(np.isnan)
    zeros_like = staticmethod(np.zeros_like)
    ones_like = staticmethod(np.ones_like)

    @staticmethod
    def clip(x: Any, low: float | None = None, high: float | None = None) -> Any:
        """`x` clipped to the bounds; None means no bound."""
        return x if low is None and high is None else np.clip(x, low, high)

    @staticmethod
    def relu(x: Any) -> Any:
        """max(0, x)."""
        return np.maximum(x, 0.0)

    @staticmethod
    def sigmoid(x: Any) -> Any:
        """1/(1 + e⁻ˣ), without overflow."""
        return np.exp(NumpyArrays.logsigmoid(x))

    @staticmethod
    def logsigmoid(x: Any) -> Any:
        """log sigmoid(x), without overflow."""
        return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))

    @staticmethod
    def stop_gradient(x: Any) -> Any:
        """`x` as a constant for the gradient: sg[x]."""
        return x

    @staticmethod
    def let(_name: str, x: Any) -> Any:
        """`x` under a name, which the end of the equation defines."""
        return x

    @staticmethod
    def sum_over(x: Any, mask: Any) -> Any:
        """The sum of `x` over the sampled tokens of each completion, [..., 1]."""
        return np.where(mask, x, 0.0).sum(-1, keepdims=True)

    @staticmethod
    def mean_over(x: Any, mask: Any) -> Any:
        """The mean of `x` over the sampled tokens of each completion, [..., 1]."""
        return NumpyArrays.sum_over(x, mask) / np.maximum(np.sum(mask, -1, keepdims=True), 1)

    @staticmethod
    def count_over(mask: Any) -> Any:
        """The number of sampled tokens in each completion, [..., 1]."""
        return np.sum(mask, -1, keepdims=True)

    @staticmethod
    def ranked(x: Any, by: Any) -> Any:
        """For each of `by` [P] the `x` [P] of its rank: where `by` has its k-th smallest, the k-th smallest of `x`."""
        return np.sort(x)[np.argsort(np.argsort(by, kind="stable"))]

    @staticmethod
    def log_odds(logprob: Any) -> Any:
        """log(p/(1 − p)) of p = exp(logprob), accurate for every p."""
        with np.errstate(divide="ignore"):
            near_one, small = np.log(-np.expm1(logprob)), np.log1p(-np.exp(logprob))
        return logprob - np.where(logprob < LOG_HALF, small, near_one)

    @staticmethod
    def group_mean(x: Any, group: Any) -> Any:
        """The mean of `x` [N] over the completions of the same prompt: [N]."""
        return statistics.group_mean(NumpyArrays, x, group)

    @staticmethod
    def group_std(x: Any, group: Any) -> Any:
        """The standard deviation (ddof = 1) of `x` [N] over the completions of the same prompt; 0 for one: [N]."""
        return statistics.group_std(NumpyArrays, x, group)

    @staticmethod
    def sum_by(x: Any, group: Any, groups: int) -> Any:
        """The sum of `x` [N] in each group: [groups]."""
        return np.bincount(group, weights=x, minlength=groups)

    @staticmethod
    def lowest_by(x: Any, counted: Any, group: Any, groups: int) -> Any:
        """The lowest counted `x` [N] of each group, 0 for a group without any: [groups]."""
        lowest = np.full(groups, np.inf)
        np.minimum.at(lowest, group[counted], x[counted])
        return np.where(np.isinf(lowest), 0.0, lowest)

    @staticmethod
    def rsqrt(x: Any) -> Any:
        """1/√x."""
        return 1 / np.sqrt(x)

    @staticmethod
    def cumsum(x: Any) -> Any:
        """Cumulative sums along each completion."""
        return np.cumsum(x, -1)

    @staticmethod
    def places(x: Any) -> Any:
        """0, 1, …: the index of each token of `x` [N, L], int64 [L]."""
        return np.arange(x.shape[-1])

    @staticmethod
    def indices_like(x: Any) -> Any:
        """Zeros as group numbers, int64 [N]."""
        return np.zeros(len(x), dtype=np.int64)
