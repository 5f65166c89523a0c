"""Smoothing as TensorBoard does it, so that a curve looks the same in both."""

from __future__ import annotations

import math
from collections.abc import Sequence

STRENGTHS = (0.0, 0.6, 0.9)
"""Weights to choose from; 0 is none."""


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """The exponential moving average of `values`: each is `weight` parts what went before, the rest itself.

    Divided by 1 − weightⁿ, the weights of the first n values add up to 1 (Kingma and Ba 2014, arXiv:1412.6980,
    section 3). What is not finite stays as it is, and the average goes on after it.
    """
    result, total, seen = [], 0.0, 0
    for value in values:
        if not math.isfinite(value):
            result.append(value)
            continue
        total, seen = weight * total + (1 - weight) * value, seen + 1
        result.append(total / (1 - weight**seen))
    return result


def smoothing_label(weight: float) -> str:
    """The label of a smoothed curve: "smoothed .9"; empty if smoothing is off."""
    return f"smoothed {weight:g}".replace("0.", ".") if weight else ""
