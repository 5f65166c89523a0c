"""What the parts of a reward do within the groups of one update: how they vary together, and whether they pay right
answers; and groups whose rewards hardly differ, which dividing by their deviation makes large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from rlplay.health.counts import GOLD_COLUMNS, WinCount, compared
from rlplay.trace.answers import advantages
from rlplay.trace.records import Array
from rlplay.trace.update import Update

MOST_LEVELS = 16
"""Different rewards of an update above which they are no levels that can be counted."""
TINY = 0.01
"""Range of a group's rewards, as a share of the largest reward or of the batch's range, that is next to nothing.

Groups of tests of answers that are right or wrong have 1; of a share of digits, at the end of training, 0.05 and more.
"""
LARGE = 0.5
"""An advantage that moves the policy as much as a real difference."""


@dataclass(frozen=True)
class PartNumbers:
    """Of the weighted parts, in the order of `names`; sums over the answers of an update, so that updates add up."""

    names: tuple[str, ...]
    answers: int
    products: tuple[tuple[float, ...], ...]
    """Sums of products of two parts' deviations from their group's means."""
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    kinds: tuple[int, ...]
    """Different values of each part in an update; the most of any."""
    right: tuple[float, ...] = ()
    """Sums of products of each part's deviations with those of being right, 1 or 0; empty without a gold column."""
    mixed: float = 0.0
    """The sum of squares of the deviations of being right: groups with right and wrong answers."""
    won: tuple[WinCount, ...] = ()
    """Of two answers to one prompt, whether each part gives the right one more."""
    levels: Mapping[float, tuple[int, int]] = field(default_factory=dict)
    """By reward: the answers that earned it, and the right ones among them; empty if there are too many levels."""

    def __add__(self, other: PartNumbers) -> PartNumbers:
        """Of both updates; their parts must have the same names."""
        levels = {
            level: (
                self.levels.get(level, (0, 0))[0] + other.levels.get(level, (0, 0))[0],
                self.levels.get(level, (0, 0))[1] + other.levels.get(level, (0, 0))[1],
            )
            for level in {*self.levels, *other.levels}
        }
        both = self.right and other.right
        return PartNumbers(
            self.names,
            self.answers + other.answers,
            tuple(map(tuple, (np.array(self.products) + np.array(other.products)).tolist())),
            tuple(map(min, self.lowest, other.lowest)),
            tuple(map(max, self.highest, other.highest)),
            tuple(map(max, self.kinds, other.kinds)),
            tuple(a + b for a, b in zip(self.right, other.right, strict=True)) if both else self.right or other.right,
            self.mixed + other.mixed,
            tuple(a + b for a, b in zip(self.won, other.won, strict=True)) if both else self.won or other.won,
            levels if self.levels and other.levels else {},
        )


@dataclass(frozen=True)
class TinyGroups:
    """Groups whose answers earned differently, those of them that hardly did and have large advantages all the same."""

    groups: int
    tiny: int
    spread: float
    """The smallest range of the rewards of such a group."""
    advantage: float
    """The largest advantage in it."""
    answer: int
    """One of its answers."""


def part_numbers(update: Update, held: Mapping[str, Array]) -> PartNumbers | None:
    """None without rewards; `held` says by column which answers contain its value, bool [N]."""
    sampled, scored = update.sampled, update.scored
    if sampled is None or scored is None or scored.roles or not scored.parts:
        return None
    names = tuple(scored.parts)
    parts = np.array([scored.weights.get(name, 1.0) * np.nan_to_num(scored.parts[name]) for name in names], np.float64)
    known = np.isfinite(scored.rewards)
    if not known.any():
        return None
    parts, group = parts[:, known], sampled.group[known]
    off = parts - _group_means(parts, group)
    has = right_answers(held)
    right: tuple[float, ...] = ()
    levels: dict[float, tuple[int, int]] = {}
    mixed, won = 0.0, tuple[WinCount, ...]()
    if has is not None:
        is_right = has[known].astype(np.float64)[None]
        apart = is_right - _group_means(is_right, group)
        won = tuple(compared(group, row, is_right[0], np.ones(len(group), dtype=bool)) for row in parts)
        right, mixed = tuple((off @ apart[0]).tolist()), float((apart**2).sum())
        levels = _levels(scored.rewards[known], is_right[0])
    return PartNumbers(
        names, int(known.sum()), tuple(map(tuple, (off @ off.T).tolist())), tuple(parts.min(axis=1).tolist()),
        tuple(parts.max(axis=1).tolist()), tuple(len(np.unique(row)) for row in parts), right, mixed, won, levels,
    )  # fmt: skip


def _group_means(values: Array, group: Array) -> Array:
    """The mean of each answer's group, [K, N] of [K, N]."""
    _, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    return np.array([np.bincount(place, row) / counts for row in values])[:, place]


def right_answers(held: Mapping[str, Array]) -> Array | None:
    """Which answers are right, by the column named so that tells most of them apart."""
    named = [has for name, has in held.items() if name.lower() in GOLD_COLUMNS]
    return max(named, key=lambda has: float(has.var()), default=None)


def _levels(rewards: Array, right: Array) -> dict[float, tuple[int, int]]:
    found = np.round(rewards.astype(np.float64), 6)
    values = np.unique(found)
    if len(values) > MOST_LEVELS:
        return {}
    return {float(v): (int((found == v).sum()), int(right[found == v].sum())) for v in values}


def tiny_groups(update: Update) -> TinyGroups | None:
    """None if no group has answers that earned differently, or advantages are not known."""
    sampled, scored, each = update.sampled, update.scored, advantages(update)
    if sampled is None or scored is None or each is None or scored.roles or not np.isfinite(scored.rewards).any():
        return None
    rewards = scored.rewards.astype(np.float64)
    scale = max(float(np.nanmax(np.abs(rewards))), float(np.nanmax(rewards) - np.nanmin(rewards)))
    groups, found = 0, list[tuple[float, float, int]]()
    for number in np.unique(sampled.group):
        rows = np.flatnonzero((sampled.group == number) & np.isfinite(rewards) & np.isfinite(each))
        spread = float(np.ptp(rewards[rows])) if len(rows) > 1 else 0.0
        groups += spread > 0
        largest = float(np.abs(each[rows]).max(initial=0.0))
        if 0 < spread <= TINY * scale and largest >= LARGE:
            found.append((spread, largest, int(rows[np.abs(each[rows]).argmax()])))
    if not groups:
        return None
    spread, largest, answer = min(found, default=(0.0, 0.0, 0))
    return TinyGroups(groups, len(found), spread, largest, answer)
