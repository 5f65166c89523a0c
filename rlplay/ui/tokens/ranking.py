"""The tokens with the largest and the smallest values of a statistic, in order, as `x` and `X` go through them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array, Sampled

MOST = 1000
"""Tokens in the order; nobody presses a key more often."""
_EQUAL = 1e-5
"""Relative difference below which values are equal: sums over steps and lengths leave rounding errors."""


class Ranked(NamedTuple):
    """A token of the policy, by its place; and how many tokens of its answer have its `value`, the first of them it."""

    completion: int
    token: int
    value: float
    sharing: int


def rising(lens: Lens, values: Array, lowest: bool) -> bool:
    """Whether the smallest of these values come first: they are asked for, or nothing is above a two-sided middle."""
    return lowest or (lens.two_sided and bool(np.nanmax(values) <= (lens.low + lens.high) / 2))


def ranking(
    sampled: Sampled, values: Array, lens: Lens, order: list[int], found: Array | None = None, lowest: bool = False
) -> list[Ranked]:
    """The tokens by their `values`, float [T]: the largest first, or the `lowest`; equal ones from top to bottom.

    Only sampled tokens of the completions in `order` count, and of those only the `found` ones, bool [T], if there are
    any. Equal tokens of one answer count once. If no value is above the middle of a two-sided scale, the smallest come
    first in any case. Where the statistic is a state, only those in one count, each by itself.
    """
    rank = np.full(len(sampled.group), -1)
    rank[order] = np.arange(len(order))
    here = (sampled.mask == 1) & np.repeat(rank >= 0, np.diff(sampled.offsets)) & np.isfinite(values)
    if found is not None and found.any():
        here &= found
    states = lens.scale == "states"
    if states:
        here &= values != 0
    tokens = np.flatnonzero(here)
    if not len(tokens):
        return []
    sizes = values[tokens] if rising(lens, values[tokens], lowest) else -values[tokens]
    if len(tokens) > MOST:
        kept = sizes <= np.partition(sizes, MOST)[MOST] + _EQUAL
        tokens, sizes = tokens[kept], sizes[kept]
    sort = np.argsort(sizes, kind="stable")
    tokens, sizes = tokens[sort], sizes[sort]
    steps = np.diff(sizes, prepend=sizes[:1]) > _EQUAL * np.abs(sizes)
    owners = np.searchsorted(sampled.offsets, tokens, side="right") - 1
    groups = np.stack([np.cumsum(steps), rank[owners]], axis=1)
    sort = np.lexsort((tokens, groups[:, 1], groups[:, 0]))
    tokens, owners, groups = tokens[sort], owners[sort], groups[sort]
    begins = np.ones(len(tokens), dtype=bool) if states else np.append(True, (np.diff(groups, axis=0) != 0).any(axis=1))
    counts = np.diff(np.append(np.flatnonzero(begins), len(tokens)))
    return [
        Ranked(int(owner), int(token - sampled.offsets[owner]), float(values[token]), int(count))
        for token, owner, count in zip(tokens[begins][:MOST], owners[begins][:MOST], counts[:MOST], strict=True)
    ]
