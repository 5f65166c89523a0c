"""The tokens with the largest value of a statistic, from top to bottom of the screen."""

from __future__ import annotations

import numpy as np

from rlplay.trace.lenses import Lens
from rlplay.trace.records import Array, Sampled


def strongest(
    sampled: Sampled, values: Array, lens: Lens, order: list[int], found: Array | None = None
) -> tuple[Array, float]:
    """All places (completion, token) with the largest of `values`, float [T]: int64 [P, 2]; and that value.

    Only sampled tokens of the completions in `order` count, and of those only the `found` ones, bool [T], if there are
    any. If no value is above the middle of a two-sided scale, the smallest value counts instead: it is the strongest.
    No place, and NaN, if none has a value.
    """
    rank = np.full(len(sampled.group), -1)
    rank[order] = np.arange(len(order))
    here = (sampled.mask == 1) & np.repeat(rank >= 0, np.diff(sampled.offsets))
    if found is not None and found.any():
        here &= found
    values = np.where(here, values, np.nan)
    if not np.isfinite(values).any():
        return np.zeros((0, 2), dtype=np.int64), np.nan
    none_above = lens.two_sided and np.nanmax(values) <= (lens.low + lens.high) / 2
    best = float(np.nanmin(values) if none_above else np.nanmax(values))
    # Sums over steps and lengths leave rounding errors between equal values.
    offsets, tokens = sampled.offsets, np.flatnonzero(np.isclose(values, best, rtol=1e-5, atol=0))
    owners = np.searchsorted(offsets, tokens, side="right") - 1
    places = np.stack([owners, tokens - offsets[owners]], axis=1)
    return places[np.argsort(rank[owners], kind="stable")], best
