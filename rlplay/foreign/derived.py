"""Per-token quantities that follow from what a trainer recorded, by the formulas of `algorithms`: ratio, clipping."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.settings import Settings, row
from rlplay.trace.records import Array


def padded(values: Array, lengths: Array, fill: float = 0.0) -> Array:
    """Flat token values of R answers as rows: [R, L]."""
    out = np.full((len(lengths), int(lengths.max(initial=0))), fill, dtype=np.float64)
    out[_inside(lengths)] = values
    return out


def ratio_and_clips(
    logprobs: Array, old_logprobs: Array, advantages: Array, mask: Array, lengths: Array, settings: Settings
) -> tuple[Array, Array | None]:
    """The importance ratio, float32 [T], and the clip state, int8 [T], of flat tokens in answers of these `lengths`.

    The clip state is None where the algorithm is not on record, or the surrogate's bound needs more than was recorded.
    """
    inside = _inside(lengths)
    sampled = padded(mask, lengths).astype(bool)
    log_ratio = np.where(sampled, padded(logprobs - old_logprobs, lengths), 0.0)
    low, high = settings.clip_range
    known: dict[str, Any] = {
        "log_ratio": log_ratio, "mask": sampled, "advantages": padded(advantages, lengths), "epsilon": low,
        "epsilon_high": high,
    }  # fmt: skip
    level, surrogate = row(settings, "importance_sampling_level"), row(settings, "surrogate")
    weight = call_choice(level.compute, NumpyArrays, known, settings)
    known["ratio"] = np.exp(np.broadcast_to(weight, log_ratio.shape))
    if not settings.algorithm:
        return known["ratio"][inside].astype(np.float32), None
    compute = surrogate.gradient_zero or level.gradient_zero
    if compute is None:
        return known["ratio"][inside].astype(np.float32), np.zeros(len(logprobs), dtype=np.int8)
    state = call_choice(compute, NumpyArrays, known, settings) * sampled
    return known["ratio"][inside].astype(np.float32), state[inside].astype(np.int8)


def _inside(lengths: Array) -> Array:
    return np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
