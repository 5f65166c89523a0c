"""The vertical scale of a plot: its ends, and ticks at numbers that people would write."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from rlplay.trace.numbers import NOISE, number
from rlplay.trace.records import Array
from rlplay.ui.format.number_cells import bare

_SLIVER = 0.01
"""A side of an axis below this share of the other side is smaller than a dot."""
_NICE = np.array([1, 1.2, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10])
_STEPS = (1, 2, 5, 10)
_ABOUT = 4
"""Steps between the ends, about. An end is a whole number of half steps, so that little of the plot stays empty."""
_MOST = 5
"""Steps between ticks, however high the plot is."""
_SPACING, _APART = 2.5, 2
"""Rows from one tick to the next at least, and from one label to the next once they are rounded to rows."""


class PlotScale(NamedTuple):
    """The ends of a scale, and how its zero is written; both ends are 0 if all values are 0."""

    low: float
    high: float
    zero: str = "0"

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
        """The label of each of `height` rows, the highest first; most are empty, and all are where no value is."""
        rows = [""] * height
        if self.low == self.high:
            return [*rows[:-1], self.zero]
        for value in _ticks(self.low, self.high, min((height - 1) / _SPACING, _MOST), log):
            self._put(rows, value, log)
        for end in (self.high, self.low):
            if sum(map(bool, rows)) < 2:  # one label alone does not say what the scale is
                self._put(rows, end, log)
        return rows

    def _put(self, rows: list[str], value: float, log: bool) -> None:
        """Write a label into its row, unless others are near."""
        row = round((1 - float(self.unit(np.array(value), log))) * (len(rows) - 1))
        if not any(rows[max(row - _APART + 1, 0) : row + _APART]):
            rows[row] = tick(value) if value else self.zero


def scale_of(every: Iterable[tuple[Array, float]], log: bool) -> PlotScale | None:
    """The scale for series of values, each with the size below which a value is rounding noise; None without values.

    The ends are zero and a round number, or powers of ten. Rounding noise around 0 gets no scale, and neither does a
    side too small to see: zero is then written ≈0.
    """
    every = list(every)
    values = np.concatenate([np.where(np.abs(y) < noise, 0.0, y) for y, noise in every] or [np.zeros(0)])
    values = values[np.isfinite(values) & ((values >= NOISE) | (not log))]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if log:
        return PlotScale(10.0 ** math.floor(math.log10(low)), 10.0 ** (math.floor(math.log10(high)) + 1))
    if low == high == 0:
        return PlotScale(0.0, 0.0, "≈0" if any(np.any(y) for y, _ in every) else "0")
    below, above = -low > _SLIVER * high, high > -_SLIVER * low
    half = _step((max(high, 0.0) - min(low, 0.0)) / _ABOUT) / 2
    ends = -_up(-low, half) if below else 0.0, _up(high, half) if above else 0.0
    unseen = (low < 0 and not below) or (high > 0 and not above)
    return PlotScale(*ends, "≈0" if unseen else "0")


def _up(value: float, step: float) -> float:
    return math.ceil(value / step - 1e-9) * step


def _step(least: float) -> float:
    """The smallest step of at least this size that people count in: 1, 2 or 5 times a power of ten."""
    size = 10.0 ** math.floor(math.log10(least))
    return next(nice * size for nice in _STEPS if nice * size >= least * (1 - 1e-9))


def _ticks(low: float, high: float, most: float, log: bool) -> list[float]:
    """Round values from end to end, which leave room for `most` steps. 0 comes first: it matters more than others."""
    if log:
        powers = range(round(math.log10(low)), round(math.log10(high)) + 1)
        return [10.0**power for power in powers[:: max(math.ceil((len(powers) - 1) / max(most, 1)), 1)]]
    if most < 1:
        return [0.0]
    step = _step((high - low) / most)
    inside = [step * at for at in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return sorted(inside, key=lambda value: value != 0)


def tick(value: float) -> str:
    """A number as people write it on an axis: .5, 12, 1.5k, 2M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if size <= abs(value) < 1e9:
            return f"{number(value / size)}{letter}"
    return bare(number(value))


def nice(value: float) -> float:
    """The next round number from a positive `value` on."""
    power = 10.0 ** math.floor(math.log10(value))
    return float(min(nice for nice in _NICE if nice * power >= value * (1 - 1e-9)) * power)
