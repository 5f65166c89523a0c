"""Where the tokens of an update are in the plane of importance ratio and advantage."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, spans
from rlplay.trace.update import Update


class Pulls(NamedTuple):
    """The P sampled tokens with a finite ratio, and where their ratios come from."""

    ratio: Array
    """float [P], π/π_old: before the last optimizer step, or after the update where there was only one step."""
    advantage: Array
    """float [P]"""
    silent: Array
    """bool [P], whether clipping left the token without a gradient in that step."""
    step: int | None
    """The number of that step from 1; None if the ratios are those after the update."""
    steps: int

    @property
    def along(self) -> float | None:
        """The share of tokens that became likelier with A > 0 or less likely with A < 0, of all that moved."""
        moved = (self.advantage != 0) & (self.ratio != 1)
        if not moved.any():
            return None
        return float(((self.ratio > 1) == (self.advantage > 0))[moved].mean())


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
    if steps > 1:
        tokens = spans(sampled.offsets, last.rows)
        ratio = last.importance_ratio
        clipped = np.zeros(len(tokens), dtype=bool) if last.clip_state is None else last.clip_state != 0
    else:
        new = update.new_logprobs()
        if new is None or sampled.old_logprobs is None:
            return None
        tokens = np.arange(update.tokens)
        ratio = np.exp(np.asarray(new, dtype=np.float64) - sampled.old_logprobs)
        clipped = np.zeros(len(tokens), dtype=bool)
    kept = (sampled.mask[tokens] == 1) & np.isfinite(ratio) & np.isfinite(credited.advantages[tokens])
    return Pulls(
        ratio[kept], credited.advantages[tokens][kept], clipped[kept], last.step + 1 if steps > 1 else None, steps
    )
