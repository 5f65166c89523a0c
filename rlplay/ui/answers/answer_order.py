"""The order of completions in lists: grouped by prompt, and sorted by any number or column of the answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlplay.trace.answers import OF_ANSWERS, columns, measures
from rlplay.trace.records import Array
from rlplay.trace.update import Update

AS_SAMPLED = "as sampled"
ARROWS = {True: "↓", False: "↑"}
"""The largest first, and the smallest first."""


@dataclass(frozen=True)
class Sort:
    """By which number or column, and whether the largest comes first; without a name, as sampled."""

    name: str = ""
    falling: bool = True

    @classmethod
    def of(cls, written: str) -> Sort:
        """As a script writes it: "length", "-length" for the smallest first, or "as sampled"."""
        return cls() if written == AS_SAMPLED else cls(written.removeprefix("-"), not written.startswith("-"))


def sortable(update: Update | None) -> list[str]:
    """The names to sort by: numbers of answers, then columns of the dataset."""
    return list(dict.fromkeys([*OF_ANSWERS, *measures(update), *columns(update)]))


def order(update: Update | None, sort: Sort) -> list[int]:
    """The completions in list order; ties stay as sampled, and what has no value comes last.

    Answers to one prompt stay together. Prompts are in the order of the first answer of each.
    """
    if update is None or update.sampled is None:
        return []
    group, here = update.sampled.group, np.arange(update.completions)
    key = _key(update, sort.name) if sort.name else None
    if key is None:
        return [int(row) for row in np.argsort(group, kind="stable")]
    key = np.where(np.isnan(key), np.inf, -key if sort.falling else key)
    best = np.full(len(update.sampled.prompts), np.inf)
    np.minimum.at(best, group, key)
    return [int(row) for row in np.lexsort((here, key, group, best[group]))]


def _key(update: Update, name: str) -> Array | None:
    """What to sort by, float64 [N], NaN where there is no value; words by their place in the alphabet."""
    number = measures(update).get(name)
    if number is not None:
        return np.asarray(number, dtype=np.float64)
    values = columns(update).get(name)
    if values is None:
        return None
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except (TypeError, ValueError, OverflowError):
        words = [str(value).casefold() for value in values]
        place = {word: at for at, word in enumerate(sorted(set(words)))}
        return np.array([np.nan if v is None else place[w] for v, w in zip(values, words, strict=True)], dtype=float)
