"""What follows from what a trainer recorded, by the formulas of `algorithms`: ratios, clipping, and shares of both."""

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
        "epsilon_high": high, "logprobs": padded(logprobs, lengths), "old_logprobs": padded(old_logprobs, lengths),
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


def step_numbers(
    ratio: Array, clips: Array | None, log_ratio: Array, advantages: Array, mask: Array, lengths: Array,
    settings: Settings,
) -> dict[str, float]:  # fmt: skip
    """The numbers of an optimizer step that its flat tokens say, under the names of the engine's `step_metrics`."""
    counted = (mask == 1) & np.isfinite(ratio)
    if settings.level_row.one_ratio:
        firsts = np.zeros_like(counted)
        firsts[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
        counted &= firsts
    if not counted.any():
        return {}
    ratio, (low, high) = ratio[counted], settings.clip_range
    found = {"ratio_max": float(ratio.max())}
    if clips is not None:
        state = clips[counted]
        shares = float((state < 0).mean()), float((state == 1).mean())
        found |= {"clip_ratio/low_mean": shares[0], "clip_ratio/high_mean": shares[1]}
        found["clip_ratio/region_mean"] = sum(shares)
        if settings.delta is not None and settings.surrogate_row.band:
            found["clip_ratio/delta_mean"] = float((state == 2).mean())
    if not settings.algorithm:
        return found
    if settings.level_row.band:
        moved = log_ratio[counted]
        found["ratio_outside"] = float(((moved < -low) | (moved > high)).mean())
    elif settings.surrogate_row.band:
        found["ratio_outside"] = float(((ratio < 1 - low) | (ratio > 1 + high)).mean())
    if settings.surrogate_row.cap:
        found["cispo_clip_ratio"] = float(((ratio > high) & (advantages[counted] > 0)).mean())
    return found


def _inside(lengths: Array) -> Array:
    return np.arange(int(lengths.max(initial=0)))[None, :] < lengths[:, None]
