"""What an update did to the mean probabilities, in words."""

from __future__ import annotations

import numpy as np

from rlplay.trace.lenses import LENSES
from rlplay.trace.update import Update

UNMOVED = 5e-4
"""A smaller change of a mean probability does not show in three digits."""


def on_average(update: Update, which_way: tuple[str, str]) -> list[str]:
    """How the tokens of each sign moved; if both went the same way, the second says so, because one expects another."""
    means = update.once(_mean_changes)
    said = [
        f"{update.step_word}s {which} {became(*mean)}"
        for which, mean in zip(which_way, means, strict=True)
        if mean is not None
    ]
    up, down = means
    if up is not None and down is not None and up[1] * down[1] > 0 and min(abs(up[1]), abs(down[1])) >= UNMOVED:
        start, delta = down
        return [f"{said[0]}, and so did those {which_way[1]} ({start:.3f} → {start + delta:.3f})"]
    return said


def _mean_changes(update: Update) -> list[tuple[float, float] | None]:
    """The mean probability before the update and its mean change, of the tokens with A > 0 and of those with A < 0."""
    before, delta = LENSES["probability"].values(update), LENSES["prob_delta"].values(update)
    sampled, credited = update.sampled, update.credited
    if sampled is None or credited is None or before is None or delta is None:
        return [None, None]
    known = np.isfinite(delta) & (sampled.mask == 1)
    chosen = known & (credited.advantages > 0), known & (credited.advantages < 0)
    return [(float(before[kept].mean()), float(delta[kept].mean())) if kept.any() else None for kept in chosen]


def became(start: float, delta: float) -> str:
    """How a mean probability changed: "became likelier (0.970 → 0.978)"."""
    moved = f"({start:.3f} → {start + delta:.3f})"
    if abs(delta) < UNMOVED:
        return f"hardly changed {moved}"
    return f"became {'likelier' if delta > 0 else 'less likely'} {moved}"
