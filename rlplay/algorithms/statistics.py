"""Means and spreads of groups, over any array namespace.

Every mean is computed from the differences to the lowest value of the group. So the mean of equal values is exactly
that value, without rounding, and their spread is exactly 0: a group of equal rewards has no signal under any baseline
and scale.
"""

from __future__ import annotations

from typing import Any


def moments(xp: Any, values: Any, group: Any, groups: int) -> tuple[Any, Any]:
    """Mean and variance (ddof = 1) of the known values [N] of each group: two [groups].

    NaN counts as unknown. The variance of a single value is 0; a group without values has mean and variance 0.
    """
    known = xp.where(xp.isnan(values), xp.zeros_like(values), xp.ones_like(values))
    filled = xp.where(known > 0, values, xp.zeros_like(values))
    mean = weighted_mean(xp, filled, known, group, groups)
    squares = xp.sum_by(known * (filled - mean[group]) ** 2, group, groups)
    return mean, squares / xp.clip(xp.sum_by(known, group, groups) - 1, low=1)


def group_statistics(xp: Any, values: Any, group: Any, groups: int) -> tuple[Any, Any]:
    """Mean and standard deviation (ddof = 1) of the known values [N] of each group: two [groups], as `moments`."""
    mean, variance = moments(xp, values, group, groups)
    return mean, xp.sqrt(variance)


def group_mean(xp: Any, values: Any, group: Any) -> Any:
    """The mean of the values [N] of each one's group, itself included: [N]."""
    return weighted_mean(xp, values, xp.ones_like(values), group, count(group))[group]


def group_std(xp: Any, values: Any, group: Any) -> Any:
    """The standard deviation (ddof = 1) of the values [N] of each one's group: [N]."""
    return group_statistics(xp, values, group, count(group))[1][group]


def weighted_mean(xp: Any, values: Any, weights: Any, group: Any, groups: int) -> Any:
    """Σ weight·value / Σ weight of each group, [groups], 0 for a group without weight; weights are 0 or at least 1."""
    lowest = xp.lowest_by(values, weights > 0, group, groups)
    above = xp.where(weights > 0, values - lowest[group], xp.zeros_like(values))
    return lowest + xp.sum_by(weights * above, group, groups) / xp.clip(xp.sum_by(weights, group, groups), low=1)


def count(group: Any) -> int:
    """How many groups there are, numbered from 0."""
    return int(group.max()) + 1
