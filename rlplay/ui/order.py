"""In which order completions are listed: grouped by prompt, inside a group as the user chose."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlplay.trace.records import Array
from rlplay.trace.update import Update

Sort = Literal["as sampled", "reward", "advantage", "length"]
SORTS: tuple[Sort, ...] = ("as sampled", "reward", "advantage", "length")


def order(update: Update | None, sort: Sort) -> list[int]:
    """The completions in the order they are listed in, best or longest first; ties stay as sampled."""
    if update is None or update.sampled is None:
        return []
    group = update.sampled.group
    key = _key(update, sort)
    if key is None:
        return [int(row) for row in np.argsort(group, kind="stable")]
    return [int(row) for row in np.lexsort((np.arange(len(group)), -np.nan_to_num(key, nan=-np.inf), group))]


def advantages(update: Update) -> Array | None:
    """The mean advantage of each completion's sampled tokens, float64 [N]; None before credit."""
    if update.credited is None or update.sampled is None:
        return None
    sampled = update.sampled
    kept = sampled.mask == 1
    bounds = np.concatenate([[0], np.cumsum(np.where(kept, update.credited.advantages, 0.0))])
    counts = np.concatenate([[0], np.cumsum(kept)])
    sums, sizes = (x[sampled.offsets[1:]] - x[sampled.offsets[:-1]] for x in (bounds, counts))
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan)


def _key(update: Update, sort: Sort) -> Array | None:
    if sort == "reward":
        return None if update.scored is None else update.scored.rewards
    if sort == "advantage":
        return advantages(update)
    if sort == "length" and update.sampled is not None:
        return np.diff(update.sampled.offsets)
    return None
