"""The plane of the pull map on its cells: which ratios and advantages a cell shows, and which cells a box covers."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rlplay.trace.pulls import PlaneBox, Pulls
from rlplay.trace.records import Array
from rlplay.ui.plot.picture import Axes, Size
from rlplay.ui.plot.scale import PlotScale, nice, scale_of

_NEAREST = 0.01
"""The ends of the horizontal axis are at least this far from 1."""
Corner = tuple[int, int]
"""A cell of a panel's content: its column and its line."""


class Plane(NamedTuple):
    """`frame` holds the ratios, `scale` the advantages of `height` lines. A cell has two dots across and four down."""

    frame: Axes
    scale: PlotScale
    height: int

    @property
    def width(self) -> int:
        """Cells across."""
        return self.frame.right - self.frame.left + 1

    def dots(self, ratio: Array, advantage: Array) -> tuple[Array, Array]:
        """The column and the line of each token's dot, int64 [P] each; tokens beyond the ends are at the ends."""
        first, last = self.frame.first, self.frame.last
        share = (np.clip(ratio.astype(np.float64), first, last) - first) / (last - first)
        unit = self.scale.unit(advantage.astype(np.float64), log=False)
        across, down = share * (2 * self.width - 1), (1 - unit) * (4 * self.height - 1)
        return np.rint(across).astype(np.int64), np.rint(down).astype(np.int64)

    def box(self, one: Corner, other: Corner) -> PlaneBox:
        """The tokens whose dots are in the cells between two corners; at an end of the plane, also those beyond."""
        left, right = sorted(min(max(at - self.frame.left, 0), self.width - 1) for at in (one[0], other[0]))
        top, bottom = sorted(min(max(at, 0), self.height - 1) for at in (one[1], other[1]))
        ratios = self._ratio(2 * left - 0.5), self._ratio(2 * right + 1.5)
        advantages = self._advantage(4 * bottom + 3.5), self._advantage(4 * top - 0.5)
        return PlaneBox(
            -math.inf if left == 0 else ratios[0], math.inf if right == self.width - 1 else ratios[1],
            -math.inf if bottom == self.height - 1 else advantages[0], math.inf if top == 0 else advantages[1],
        )  # fmt: skip

    def covered(self, box: PlaneBox) -> tuple[range, range]:
        """The columns of the panel and the lines whose middles are in a box."""
        columns = [at for at in range(self.width) if box.left < self._ratio(2 * at + 0.5) < box.right]
        lines = [at for at in range(self.height) if box.low < self._advantage(4 * at + 1.5) < box.high]
        across = range(columns[0], columns[-1] + 1) if columns else range(0)
        down = range(lines[0], lines[-1] + 1) if lines else range(0)
        return range(across.start + self.frame.left, across.stop + self.frame.left), down

    def _ratio(self, dot: float) -> float:
        return self.frame.first + dot / (2 * self.width - 1) * (self.frame.last - self.frame.first)

    def _advantage(self, dot: float) -> float:
        return self.scale.high - dot / (4 * self.height - 1) * (self.scale.high - self.scale.low)


def plane(found: Pulls, size: Size) -> Plane:
    """The plane of these tokens in a panel of this size."""
    scale = scale_of([(found.advantages, 0.0)], log=False) or PlotScale(0.0, 0.0)
    height = max(size.height - 1, 2)
    left = max(map(len, scale.labels(height, log=False))) + 1
    reach = nice(max(found.reach, _NEAREST))
    return Plane(Axes(size.width, left, max(size.width - 1, left + 1), max(1 - reach, 0.0), 1 + reach), scale, height)


def regions(found: Pulls, fences: tuple[float, ...]) -> list[PlaneBox]:
    """The parts of the plane with tokens in them: between 1 and the fences, by the sign of the advantage."""
    bounds = sorted({-math.inf, *fences, 1.0, math.inf})
    halves = (0.0, math.inf), (-math.inf, 0.0)
    boxes = [PlaneBox(left, right, *half) for half in halves for left, right in pairwise(bounds)]
    return [box for box in boxes if box.holds(found).any()]
