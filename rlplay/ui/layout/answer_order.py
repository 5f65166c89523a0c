"""The order of completions in lists: grouped by prompt; within a group, in the order that the user chose."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rlplay.trace.answers import measures
from rlplay.trace.update import Update

Sort = Literal["as sampled", "reward", "advantage", "length"]
SORTS: tuple[Sort, ...] = ("as sampled", "reward", "advantage", "length")


def order(update: Update | None, sort: Sort) -> list[int]:
    """The completions in list order, best or longest first; ties stay as sampled."""
    if update is None or update.sampled is None:
        return []
    group = update.sampled.group
    key = measures(update).get(sort)
    if key is None:
        return [int(row) for row in np.argsort(group, kind="stable")]
    return [int(row) for row in np.lexsort((np.arange(len(group)), -np.nan_to_num(key, nan=-np.inf), group))]
