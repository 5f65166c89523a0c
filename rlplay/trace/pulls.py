"""Where the tokens of an update are in the plane of importance ratio and advantage."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlplay.trace.numbers import compact
from rlplay.trace.records import Array, spans
from rlplay.trace.update import Update

_MOST = 0.98
"""The share of the tokens whose ratios set the ends of the axis."""


class PlaneBox(NamedTuple):
    """A part of the plane: ratios between `left` and `right`, advantages between `low` and `high`, ends excluded."""

    left: float
    right: float
    low: float
    high: float

    def holds(self, found: Pulls) -> Array:
        """Which tokens are in it, bool [P]."""
        across = (found.ratio > self.left) & (found.ratio < self.right)
        return np.asarray(across & (found.advantage > self.low) & (found.advantage < self.high))

    @property
    def words(self) -> str:
        """How a box is typed, as in `ratio 0.8..1.2 A 0..`; an end without a number is open."""
        left, right, low, high = ("" if math.isinf(end) else compact(end) for end in self)
        return f"ratio {left}..{right} A {low}..{high}"


_END = r"([-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?)?"
_BOX = re.compile(rf"ratio {_END}\.\.{_END} A {_END}\.\.{_END}", re.IGNORECASE)


def box(typed: str) -> PlaneBox | None:
    """The box in `typed`; None if it is none."""
    found = _BOX.fullmatch(typed)
    if found is None:
        return None
    left, right, low, high = (None if end is None else float(end) for end in found.groups())
    lowest, highest = -math.inf, math.inf
    return PlaneBox(
        lowest if left is None else left, highest if right is None else right,
        lowest if low is None else low, highest if high is None else high,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pulls:
    """The P sampled tokens with a finite ratio, and where their ratios come from."""

    ratio: Array
    """float [P], π/π_old: before the last optimizer step, or after the update where there was only one step."""
    advantage: Array
    """float [P]"""
    silent: Array
    """bool [P], whether clipping left the token without a gradient in that step."""
    tokens: Array
    """int64 [P], the index of each among all tokens of the update"""
    step: int | None
    """The number of that step from 1; None if the ratios are those after the update."""
    steps: int

    @cached_property
    def along(self) -> float | None:
        """The share of tokens that became likelier with A > 0 or less likely with A < 0, of all that moved."""
        moved = (self.advantage != 0) & (self.ratio != 1)
        if not moved.any():
            return None
        return float(((self.ratio > 1) == (self.advantage > 0))[moved].mean())

    @cached_property
    def silent_share(self) -> float | None:
        """The share of silent tokens; None if there is no token."""
        return float(self.silent.mean()) if len(self.silent) else None

    @cached_property
    def reach(self) -> float:
        """The distance |ratio − 1| that 98 % of the tokens do not exceed."""
        return float(np.quantile(np.abs(self.ratio.astype(np.float64) - 1), _MOST))

    @cached_property
    def advantages(self) -> Array:
        """The lowest and the highest advantage, float64 [2]."""
        return np.array([self.advantage.min(), self.advantage.max()], dtype=np.float64)


def has_pulls(update: Update) -> bool:
    """Whether the ratios of `pulls` can be known: one optimizer step alone needs the pass after the update."""
    if not update.steps or update.credited is None:
        return False
    return update.finished is not None or update.steps[-1].epochs * update.steps[-1].minibatches > 1


def pulls(update: Update | None) -> Pulls | None:
    """The tokens of the last optimizer step; None before it, or where a trainer recorded no advantages or ratios.

    With one step per batch every ratio in it is 1, so the ratios are taken after the update, as soon as they are known.
    """
    return None if update is None else update.once(_pulls)


def _pulls(update: Update) -> Pulls | None:
    if update.sampled is None or update.credited is None or not update.steps:
        return None
    sampled, credited, last = update.sampled, update.credited, update.steps[-1]
    steps = last.epochs * last.minibatches
    tokens = np.arange(update.tokens)
    mask, advantage = sampled.mask, credited.advantages
    clipped = None
    if steps > 1:
        tokens = spans(sampled.offsets, last.rows)
        mask, advantage, ratio, clipped = mask[tokens], advantage[tokens], last.importance_ratio, last.clip_state
    else:
        new = update.new_logprobs()
        if new is None or sampled.old_logprobs is None:
            return None
        ratio = np.exp(np.asarray(new, dtype=np.float64) - sampled.old_logprobs)
    kept = (mask == 1) & np.isfinite(ratio) & np.isfinite(advantage)
    silent = np.zeros(len(kept), dtype=bool) if clipped is None else clipped != 0
    step = last.step + 1 if steps > 1 else None
    return Pulls(ratio[kept], advantage[kept], silent[kept], tokens[kept], step, steps)
