"""How far the reference is from the policy that sampled, on the answers of one update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlplay.trace.update import Update


@dataclass(frozen=True)
class ReferenceGap:
    """The mean k3 between reference and policy, nats per token, and whether all their log-probabilities are equal."""

    kl: float
    equal: bool
    token: int
    """The token of the flat arrays that is farthest off."""


def reference_gap(update: Update) -> ReferenceGap | None:
    """Before the update's first step; None if the reference's log-probabilities are not on record."""
    sampled, credited = update.sampled, update.credited
    if sampled is None or credited is None or credited.ref_logprobs is None:
        return None
    off = (credited.ref_logprobs - sampled.old_logprobs).astype(np.float64)
    own = np.flatnonzero((sampled.mask == 1) & np.isfinite(off))
    if not len(own):
        return None
    with np.errstate(over="ignore"):
        kl = float((np.expm1(off[own]) - off[own]).mean())
    return ReferenceGap(kl, not off[own].any(), int(own[np.abs(off[own]).argmax()]))
