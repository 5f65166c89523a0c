"""The tokens of an update with a statistic, by their position in the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rlplay.trace.lenses import LENSES
from rlplay.trace.records import Array
from rlplay.trace.update import Update

LOW, HIGH = 0.1, 0.9
"""The quantiles between which a band is drawn."""


class Spread(NamedTuple):
    """The values of some tokens: how many there are, their quantiles, and the one farthest from the median."""

    tokens: int
    low: float
    median: float
    high: float
    farthest: float


@dataclass(frozen=True, eq=False)
class Places:
    """The P tokens that the policy sampled and that have a value: `index` in the flat arrays, `position` from 0."""

    index: Array  # int64 [P]
    position: Array  # int64 [P]
    beside: Array  # float64 [P] from 0 to 1: the place of the token's answer among all, in the order of sampling
    value: Array  # float64 [P]
    length: int  # of the longest answer

    def inside(self, first: int, last: int) -> Array:
        """The tokens at the positions `first` to `last`, as indices into the arrays here."""
        if first <= 0 and last >= self.length - 1:
            return np.arange(len(self.index))
        return np.flatnonzero((self.position >= first) & (self.position <= last))

    def farthest(self, first: int, last: int) -> Array:
        """The same, beginning with the one farthest from their median."""
        found = self.inside(first, last)
        values = self.value[found]
        return found[np.argsort(-np.abs(values - np.median(values)), kind="stable")] if len(found) else found


@lru_cache(maxsize=8)
def spread(places: Places, first: int, last: int, sizes: bool = False) -> Spread | None:
    """What the values at the positions `first` to `last`, or their `sizes`, are like; None without any."""
    values = places.value[places.inside(first, last)]
    values = np.abs(values) if sizes else values
    if not len(values):
        return None
    low, median, high = np.quantile(values, (LOW, 0.5, HIGH), method="nearest")
    return Spread(len(values), float(low), float(median), float(high), float(values[np.abs(values - median).argmax()]))


def places(update: Update, lens: str) -> Places | None:
    """The tokens with a finite value of a statistic; None before its phase, or if no token has one."""
    return update.once(_of(lens))


@lru_cache(maxsize=64)
def _of(lens: str) -> Callable[[Update], Places | None]:
    def found(update: Update) -> Places | None:
        sampled, values = update.sampled, LENSES[lens].values(update)
        if sampled is None or values is None:
            return None
        index = np.flatnonzero((sampled.mask == 1) & np.isfinite(values))
        if not len(index):
            return None
        lengths = np.diff(sampled.offsets)
        position = index - np.repeat(sampled.offsets[:-1], lengths)[index]
        beside = np.repeat((np.arange(len(lengths)) + 0.5) / len(lengths), lengths)[index]
        return Places(index, position, beside, values[index].astype(np.float64), int(lengths.max()))

    return found
