"""How rewards reach the answers: equal answers of a group, which are to be paid alike, and what takes part at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlplay.health.part_numbers import right_answers
from rlplay.trace.records import Array, spans
from rlplay.trace.update import Update

APART = 0.5
"""Share of the range of an update's rewards: what is less may be the noise of a judge."""


SPREAD = 0.01
"""Share of the largest reward below which the range of an update's rewards is noise, of which another check speaks."""


@dataclass(frozen=True)
class TwiceNumbers:
    """How many answers stand more than once in their group, and how many of these earned differently.

    Of an update in which all answers earned the same, or nearly, there are none.
    """

    repeated: int
    apart: int
    lower: int
    """The first of an answer that earned differently that earned less; −1 without one."""
    low: float
    high: float
    right: int
    """Answers that contain the right one, if a column says which, and those of them that earned the least."""
    unpaid: int


def twice_numbers(update: Update, held: Mapping[str, Array]) -> TwiceNumbers | None:
    """None without rewards, and where an environment has written a part: its states need not be in the answer."""
    sampled, scored = update.sampled, update.scored
    if sampled is None or scored is None or scored.roles or sampled.survey is not None or not sampled.mask.all():
        return None
    rewards = scored.rewards.astype(np.float64)
    if not np.isfinite(rewards).any():
        return None
    least, width = float(np.nanmin(rewards)), float(np.nanmax(rewards) - np.nanmin(rewards))
    differs = width > SPREAD * float(np.nanmax(np.abs(rewards)))
    same: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for row, group in enumerate(sampled.group.tolist()):
        begin, end = sampled.offsets[row : row + 2]
        if np.isfinite(rewards[row]):
            same[group, sampled.token_ids[begin:end].tobytes()].append(row)
    repeated = [rows for rows in same.values() if len(rows) > 1 and differs]
    apart = [rows for rows in repeated if np.ptp(rewards[rows]) >= APART * width]
    first = apart[0] if apart else []
    right = right_answers(held)
    return TwiceNumbers(
        len(repeated), len(apart), first[int(rewards[first].argmin())] if first else -1,
        float(rewards[first].min()) if first else 0.0, float(rewards[first].max()) if first else 0.0,
        0 if right is None else int(right.sum()), 0 if right is None else int((right & (rewards <= least)).sum()),
    )  # fmt: skip


def weightless(update: Update) -> tuple[str, ...]:
    """The parts of the reward, if each of them has the weight 0."""
    weights = {} if update.scored is None else update.scored.weights
    return () if any(weights.values()) else tuple(weights)


def cut_masked(update: Update) -> int:
    """The answers that were cut and that no optimizer step computed a log-probability or a surrogate of."""
    if update.sampled is None or not update.steps:
        return 0
    counted = np.zeros(update.tokens, dtype=bool)
    for step in update.steps:
        out = np.isnan(step.logprobs) if step.left_out is None else np.isnan(step.logprobs) | (step.left_out == 1)
        counted[spans(update.sampled.offsets, step.rows)] |= ~out
    sums = np.concatenate([[0], np.cumsum(counted)])[update.sampled.offsets]
    seen = np.unique(np.concatenate([step.rows for step in update.steps]))
    cut = update.sampled.truncated.astype(bool) & (np.diff(update.sampled.offsets) > 0) & (np.diff(sums) == 0)
    return int(cut[seen].sum())
