"""The vertical scale of a plot: its ends, its ticks and their labels."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rlplay.trace.numbers import NOISE, number
from rlplay.trace.records import Array

_SLIVER = 0.01
"""A side of an axis below this share of the other side is smaller than a dot."""
_NICE = np.array([1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10])
_STEPS = (1, 2, 2.5, 5)
_SPACING, _APART = 2.5, 2
"""Rows from one tick to the next at least, and from one label to the next once they are rounded to rows."""


class PlotScale(NamedTuple):
    """The ends of a scale and their labels; both ends are 0 if all values are 0."""

    low: float
    high: float
    bottom: str
    top: str

    def unit(self, values: Array, log: bool) -> Array:
        """Where the values are between the ends: 0 at the low end, 1 at the high end; not finite where they are not."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if log and self.low:  # values that are not positive, and rounding noise, are at minus infinity
                return np.asarray(
                    np.log(np.where(values < NOISE, 0.0, values) / self.low) / np.log(self.high / self.low)
                )
            unit = np.asarray((values - self.low) / (self.high - self.low or 1.0))
            return np.where(np.isfinite(unit), np.clip(unit, 0, 1), unit)

    def labels(self, height: int, log: bool) -> list[str]:
        """The label of each of `height` rows, the highest first; most are empty."""
        rows = [self.top, *[""] * (height - 2), self.bottom]
        for value in _ticks(self.low, self.high, (height - 1) / _SPACING, log):
            row = round((1 - float(self.unit(np.array(value), log))) * (height - 1))
            if not any(rows[max(row - _APART + 1, 0) : row + _APART]):
                rows[row] = number(value) if value else "0"
        return rows


def scale_of(every: Iterable[tuple[Array, float]], log: bool) -> PlotScale:
    """The scale for series of values, each with the size below which a value is rounding noise.

    The ends are zero and a round number, or powers of ten. Rounding noise around 0 gets no scale, and neither does a
    side too small to see: the label is ≈0.
    """
    every = list(every)
    values = np.concatenate([np.where(np.abs(y) < noise, 0.0, y) for y, noise in every] or [np.zeros(0)])
    values = values[np.isfinite(values) & ((values >= NOISE) | (not log))]
    if not len(values):
        return PlotScale(0.0, 0.0, "", "")
    low, high = float(values.min()), float(values.max())
    if log:
        low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** (math.floor(math.log10(high)) + 1)
        return PlotScale(low, high, number(low), number(high))
    if low == high == 0:
        return PlotScale(0.0, 0.0, "≈0" if any(np.any(y) for y, _ in every) else "0", "")
    ends = -nice(-low) if -low > _SLIVER * high else 0.0, nice(high) if high > -_SLIVER * low else 0.0
    bottom, top = (
        number(end) if end or not value else "≈0" for end, value in zip(ends, (min(low, 0), max(high, 0)), strict=True)
    )
    return PlotScale(*ends, bottom, top)


def _ticks(low: float, high: float, most: float, log: bool) -> list[float]:
    """Round values between the ends, which leave room for `most` steps. 0 comes first: it matters more than others."""
    if high <= low or most < 2:
        return []
    if log:
        powers = range(round(math.log10(low)) + 1, round(math.log10(high)))
        return [10.0**power for power in powers[:: max(math.ceil(len(powers) / most), 1)]]
    size = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(nice * size for nice in (*_STEPS, 10) if nice * size * most >= (high - low) * (1 - 1e-9))
    inside = [step * at for at in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return sorted((value for value in inside if low < value < high), key=lambda value: value != 0)


def nice(value: float) -> float:
    """The next round number from a positive `value` on."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(min(nice for nice in _NICE if nice * power >= value * (1 - 1e-9)) * power)
