"""Smoothing as in TensorBoard, so that curves look the same in both."""

from __future__ import annotations

import math
from collections.abc import Sequence

STRENGTHS = (0.0, 0.6, 0.9)
"""Weights to choose from; 0 is none."""


def smoothed(values: Sequence[float], weight: float) -> list[float]:
    """The exponential moving average of `values`: `weight` for the average so far, 1 − `weight` for the new value.

    Divided by 1 − weightⁿ, the weights of the first n values add up to 1 (Kingma and Ba 2014, arXiv:1412.6980,
    section 3). A value that is not finite stays unchanged, and the average continues after it.
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
