"""The drawing of tokens by position: dots, the band of the middle 80 % and the median, without any cursor."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from textual.content import Content

from rlplay.trace.records import Array
from rlplay.ui.plot.canvas import Canvas
from rlplay.ui.plot.drawn_curves import RULE
from rlplay.ui.plot.picture import AXIS, Axes, Size, painted
from rlplay.ui.plot.scale import PlotScale, scale_of
from rlplay.ui.plot.strokes import WEIGHT
from rlplay.ui.position.places import HIGH, LOW, Places

MEDIAN, BAND, MIXED, UP, DOWN = "$curve-a", "$curve-a-shade", "$text-muted", "$scale-up", "$scale-down"
FEW = 5
"""Tokens at a position from which on it has a median and a band."""
_MAJORITY = 0.6
"""The share of a cell's tokens on one side of the neutral value from which on the cell has that side's colour."""
DOT_PARTS = _ACROSS, _DOTS = 2, 4
"""Dots of a cell across and upwards."""
_EIGHTHS = 8


class Plot:
    """Where tokens are on `width` columns and `height` lines.

    The `count` positions from `first` to `last` share `bins`, which begin at the columns `edges`.
    """

    def __init__(self, found: Places, first: int, last: int, size: Size, log: bool) -> None:
        self.found, self.first, self.last, self.log = found, first, last, log
        self.inside = found.inside(first, last)
        self.scale = scale_of([(self._values(self.inside), 0.0)], log) or PlotScale(0.0, 0.0)
        self.height = max(size.height - 1, 2)
        self.labels = self.scale.labels(self.height, log)
        self.left = max(map(len, self.labels)) + 1
        self.width = max(size.width - self.left, 2)
        self.count = last - first + 1
        self.bins = min(self.count, self.width)
        self.edges = np.arange(self.bins + 1) * self.width // self.bins
        self.frame = Axes(size.width, self.left, self.left + self.width - 1, first, last)

    def _values(self, tokens: Array) -> Array:
        return np.abs(self.found.value[tokens]) if self.log else self.found.value[tokens]

    def _bin(self, position: int) -> int:
        return (min(max(position, self.first), self.last) - self.first) * self.bins // self.count

    def positions(self, position: int) -> tuple[int, int]:
        """The first and the last of the positions that share a bin with one of them."""
        low, high = (
            self.first - (-at * self.count // self.bins) for at in (self._bin(position), self._bin(position) + 1)
        )
        return low, high - 1

    def columns(self, position: int) -> range:
        """The columns of the panel for a position."""
        at = self._bin(position)
        return range(self.left + int(self.edges[at]), self.left + int(self.edges[at + 1]))

    def eighths(self, tokens: Array) -> Array:
        """The height of tokens, in eighths of a line from the bottom."""
        unit = np.clip(np.nan_to_num(self.scale.unit(self._values(tokens), self.log), neginf=0.0), 0, 1)
        return np.asarray(np.rint(unit * (self.height * _EIGHTHS - 1)), dtype=np.int64)

    def across(self, tokens: Array) -> Array:
        """Where tokens stand, in columns from the left: the answers side by side in the columns of a position."""
        position = self.found.position[tokens] - self.first
        bins = position * self.bins // self.count
        within = np.clip((position + self.found.beside[tokens]) * (self.bins / self.count) - bins, 0, 1 - 1e-9)
        return np.asarray(self.edges[bins] + within * np.diff(self.edges)[bins])

    def cell(self, token: int) -> tuple[int, int]:
        """The column of the panel and the line of a token."""
        one = np.array([token])
        return self.left + int(self.across(one)[0]), self.height - 1 - int(self.eighths(one)[0]) // _EIGHTHS

    def nearest(self, column: int, line: int) -> int | None:
        """The token whose dot is nearest to a cell of the panel, as an index of all; None if none is in view."""
        if not len(self.inside):
            return None
        columns = self.across(self.inside) - (column - self.left) - 0.5
        lines = self.eighths(self.inside) / _EIGHTHS - (self.height - line) + 0.5
        return int(self.inside[(columns**2 + (2 * lines) ** 2).argmin()])  # a cell is twice as high as it is wide


plot_of = lru_cache(maxsize=4)(Plot)
"""A plot, kept while its panel is drawn and its cursor moves."""


@lru_cache(maxsize=4)
def drawing(plot: Plot, neutral: float | None, tinted: bool, words: str) -> Content:
    """The picture; dots on either side of a `neutral` value have their colours; `words` are below."""
    canvas = Canvas(plot.width, plot.height)
    eighths = plot.eighths(plot.inside)
    _spread(canvas, plot, eighths, tinted)
    _dots(canvas, plot, eighths * _DOTS // _EIGHTHS, neutral)
    for at, label in enumerate(plot.labels):
        if label:
            canvas.rule(plot.height - 1 - at, RULE)
    characters, inks, styles = canvas.finished()
    labels = [f"{label:>{plot.left - 1}} " for label in plot.labels]
    return painted(labels, characters, inks, styles, _axis(plot, words))


def _spread(canvas: Canvas, plot: Plot, eighths: Array, tinted: bool) -> None:
    """The band between the quantiles, and the median, where a bin has enough tokens."""
    rows, bins = plot.height * _EIGHTHS, (plot.found.position[plot.inside] - plot.first) * plot.bins // plot.count
    counted = np.bincount(bins * rows + eighths, minlength=plot.bins * rows).reshape(plot.bins, rows)
    below = counted.cumsum(axis=1)
    enough = np.flatnonzero(below[:, -1] >= FEW)
    if not len(enough):
        return
    wide = np.diff(plot.edges)
    columns = np.flatnonzero(np.isin(np.repeat(np.arange(plot.bins), wide), enough))
    low, middle, high = (
        np.repeat((below[enough] >= np.ceil(q * below[enough, -1:])).argmax(axis=1), wide[enough])
        for q in (LOW, 0.5, HIGH)
    )
    if tinted:
        canvas.paint(columns, low, high + 1, BAND)
    base = np.minimum(middle, rows - WEIGHT)
    canvas.paint(columns, base, base + WEIGHT, MEDIAN, True)


def _dots(canvas: Canvas, plot: Plot, rows: Array, neutral: float | None) -> None:
    """A dot for each token; a cell has the colour of the side on which most of its tokens are."""
    wide = canvas.width * _ACROSS
    side = np.zeros(len(rows), dtype=np.int64)
    if neutral is not None:
        side = np.sign(plot.found.value[plot.inside] - neutral).astype(np.int64)
    places = (rows * wide + (plot.across(plot.inside) * _ACROSS).astype(np.int64)) * 3 + side + 1
    counted = np.bincount(places, minlength=canvas.height * _DOTS * wide * 3).reshape(-1, 3)
    at = np.flatnonzero(counted.any(axis=1))
    rows, columns = np.divmod(at, wide)
    cells = rows // _DOTS * canvas.width + columns // _ACROSS
    down, up = (
        np.bincount(cells, weights=counted[at, side], minlength=canvas.width * canvas.height) for side in (0, 2)
    )
    most = np.maximum(up + down, 1)
    ink = np.select([up >= _MAJORITY * most, down >= _MAJORITY * most], [1, 2], 0)[cells]
    for number, style in enumerate((MIXED, UP, DOWN)):
        canvas.dot(columns[ink == number], rows[ink == number], style)


def _axis(plot: Plot, words: str) -> Content:
    ends = f"{plot.first + 1:,}", f"{plot.last + 1:,}"
    room = plot.width - sum(map(len, ends)) - 2
    start = plot.left + (plot.width - len(words)) // 2
    return plot.frame.axis(*ends, [(start, words, AXIS)] if room >= len(words) else [])
