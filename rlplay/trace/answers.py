"""The numbers of whole answers: rewards, lengths and advantages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update

OF_ANSWERS = ("reward", "advantage", "length")


def measures(update: Update | None) -> dict[str, Array]:
    """The known numbers of the N answers by name, float or int [N]: `OF_ANSWERS`, reward parts, gold scores and the
    columns of numbers that reward functions have logged.

    Of several of one name, the one named first here wins.
    """
    if update is None or update.sampled is None:
        return {}
    found: dict[str, Array] = {}
    if update.scored is not None:
        scored = update.scored
        found |= {name: column for name, values in scored.extra.items() if (column := _numbers(values)) is not None}
        found |= {**scored.gold, **scored.parts, "reward": scored.rewards}
    mean = advantages(update)
    if mean is not None:
        found["advantage"] = mean
    ends = update.sampled.offsets
    if update.step_word == "move":  # in a world a length is in moves, and the squares are not the policy's
        ends = np.concatenate([[0], np.cumsum(update.sampled.mask == 1)])[ends]
    return found | {"length": np.diff(ends)}


def columns(update: Update | None) -> dict[str, list[Any]]:
    """The dataset's columns by name, for each of the N answers the value of its prompt; None where that has none."""
    if update is None or update.sampled is None:
        return {}
    sampled = update.sampled
    names = dict.fromkeys(name for row in sampled.columns for name in row)
    return {name: [sampled.columns[group].get(name) for group in sampled.group.tolist()] for name in names}


def _numbers(values: Sequence[Any]) -> Array | None:
    """A column as float64 [N], NaN for None; None if it holds anything but numbers."""
    if not all(value is None or isinstance(value, (bool, int, float)) for value in values):
        return None
    return np.array([np.nan if value is None else float(value) for value in values])


def advantages(update: Update) -> Array | None:
    """The mean advantage of each completion's sampled tokens, float64 [N]; None before credit."""
    return update.once(_advantages)


def _advantages(update: Update) -> Array | None:
    sampled, credited = update.sampled, update.credited
    if credited is None or sampled is None:
        return None
    kept = sampled.mask == 1
    sums, sizes = per_answer(sampled, np.where(kept, credited.advantages, 0.0)), per_answer(sampled, kept)
    return np.asarray(np.where(sizes > 0, sums / np.maximum(sizes, 1), np.nan))


def per_answer(sampled: Sampled, flat: Array) -> Array:
    """The sum of a flat array [T] over the tokens of each answer, float64 or int64 [N]."""
    bounds = np.concatenate([[0], np.cumsum(flat)])
    return np.asarray(bounds[sampled.offsets[1:]] - bounds[sampled.offsets[:-1]])


def alike(update: Update) -> list[int]:
    """For each completion the first one of its group with the same tokens, itself if there is none before: int [N]."""
    return update.once(_alike)


def _alike(update: Update) -> list[int]:
    sampled = update.sampled
    if sampled is None:
        return []
    first: dict[tuple[int, bytes], int] = {}
    bounds, groups = sampled.offsets.tolist(), sampled.group.tolist()
    tokens = (sampled.token_ids[start:end].tobytes() for start, end in pairwise(bounds))
    return [first.setdefault(form, row) for row, form in enumerate(zip(groups, tokens, strict=True))]


def repeated(update: Update, order: Sequence[int]) -> dict[int, int]:
    """The completions that repeat an earlier one of their group in this `order`, token for token.

    Maps each to the place of the first such completion within its group, counted from 1. Empty while sampling is under
    way.
    """
    if update.sampled is None or not update.sampled.done:
        return {}
    found: dict[int, int] = {}
    places: dict[int, int] = {}
    first: dict[int, int] = {}
    groups, forms = update.sampled.group.tolist(), alike(update)
    for completion in order:
        group = groups[completion]
        places[group] = places.get(group, 0) + 1
        here = first.setdefault(forms[completion], places[group])
        if here != places[group]:
            found[completion] = here
    return found
