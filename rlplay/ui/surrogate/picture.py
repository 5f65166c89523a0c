"""Draws the surrogate at a positive and at a negative advantage side by side, with the tokens of an update below it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from textual.content import Content

from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import compact
from rlplay.trace.pulls import Pulls
from rlplay.trace.records import Array
from rlplay.ui.format.bars import BARS
from rlplay.ui.surrogate.walls import Walls, objective

_LEAST_REACH, _MOST_REACH = 0.4, 4.0
_GAP, _AXIS, _MOST_BARS = 4, 2, 8
"""Cells between the two halves; lines of the axis; of the tokens, at most."""
_FLAT = 1e-9
_HALVES = (1.0, "$scale-up"), (-1.0, "$scale-down")
_PIXELS = " ▀▄█"


class Frame(NamedTuple):
    """Where the halves are: each `width` cells wide, ratios 1 − `reach` (at least 0) to 1 + `reach`, `height` lines of
    curve and `bars` lines of tokens."""

    width: int
    height: int
    reach: float
    bars: int

    @classmethod
    def of(cls, columns: int, lines: int, walls: Walls, found: Pulls | None) -> Frame:
        """For a picture of this size: the walls and nearly all tokens are in it."""
        wanted = max(_LEAST_REACH, 1.6 * max(walls), 0.0 if found is None or not len(found.ratio) else found.reach)
        reach = next(
            each for each in (0.4, 0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, _MOST_REACH) if each >= min(wanted, _MOST_REACH)
        )
        bars = max(1, min(lines // 5, _MOST_BARS))
        return cls(max((columns - _GAP) // 2, 8), max(lines - bars - _AXIS, 3), reach, bars)

    @property
    def first(self) -> float:
        """The smallest ratio."""
        return max(1 - self.reach, 0.0)

    def ratios(self) -> Array:
        """The ratio in the middle of each cell, float64 [width]."""
        return self.first + (np.arange(self.width) + 0.5) / self.width * (1 + self.reach - self.first)

    def column(self, ratio: float) -> int:
        """The cell of a ratio."""
        share = (ratio - self.first) / (1 + self.reach - self.first)
        return min(max(int(share * self.width), 0), self.width - 1)

    def ratio_at(self, x: int) -> float:
        """The ratio under a cell of the picture, in either half."""
        within = x if x < self.width + _GAP // 2 else x - self.width - _GAP
        return float(self.ratios()[min(max(within, 0), self.width - 1)])


def drawn(frame: Frame, s: Settings, walls: Walls, begun: Walls, found: Pulls | None, held: bool | None) -> Content:
    """The picture. `held` says which wall is being moved: the upper one, the lower one, or None for both; where one was
    in the settings (`begun`) stays marked."""
    halves = [_half(frame, s, walls, begun, found, sign, ink, held) for sign, ink in _HALVES]
    gap = Content(" " * _GAP)
    return Content("\n").join(gap.join(line) for line in zip(*halves, strict=True))


def _half(
    frame: Frame, s: Settings, walls: Walls, begun: Walls, found: Pulls | None, sign: float, ink: str, held: bool | None
) -> list[Content]:
    values = objective(s, walls, frame.ratios(), sign)
    flat = np.abs(np.gradient(values)) <= _FLAT
    signs = _walls(frame, s, walls, begun, sign > 0, held)
    lines = []
    for row in _curve(values, frame.height):
        parts = [
            (_PIXELS[pixel], "$text-muted" if flat[x] else ink) if pixel else signs.get(x, (" ", ""))
            for x, pixel in enumerate(row)
        ]
        lines.append(Content.assemble(*parts))
    has_walls = s.surrogate_row.band
    return [*lines, *_tokens(frame, walls if has_walls else None, found, sign, ink), *_axis(frame, walls, has_walls)]


def _walls(
    frame: Frame, s: Settings, walls: Walls, begun: Walls, rises: bool, held: bool | None
) -> dict[int, tuple[str, str]]:
    """By cell, what a wall looks like: at each sign of the advantage one stops the curve, the other does nothing."""
    if not s.surrogate_row.band:
        return {}
    old = {frame.column(1 - begun.low), frame.column(1 + begun.high)}
    found = dict.fromkeys(old, ("┊", "$text-muted"))
    for place, upper in ((frame.column(1 - walls.low), False), (frame.column(1 + walls.high), True)):
        moves = held in (None, upper)
        stops = upper == rises
        found[place] = ("┃" if stops else "│", ("bold $accent" if stops else "$accent") if moves else "$text-muted")
    return found


def _curve(values: Array, height: int) -> list[list[int]]:
    """For each line the pixels of its cells: 1 the upper half, 2 the lower, 3 both."""
    low, high = float(values.min()), float(values.max())
    unit = (values - low) / (high - low or 1.0)
    rows = np.rint((1 - unit) * (2 * height - 1)).astype(int)
    grid = np.zeros((2 * height, len(values)), dtype=int)
    for x, row in enumerate(rows):
        other = rows[x - 1] if x else row
        begin, end = sorted((row, other + (row > other) - (row < other) if row != other else row))
        grid[max(begin - 1, 0) : end + 1, x] = 1
    pixels: list[list[int]] = (grid[0::2] + 2 * grid[1::2]).tolist()
    return pixels


def _tokens(frame: Frame, walls: Walls | None, found: Pulls | None, sign: float, ink: str) -> list[Content]:
    """How many tokens stand at each ratio, by the square root of their number; those beyond the wall are grey."""
    if found is None or not len(found.ratio):
        return [Content(" " * frame.width)] * frame.bars
    here = found.ratio[np.sign(found.advantage) == sign]
    edges = np.linspace(frame.first, 1 + frame.reach, frame.width + 1)
    roots = np.sqrt(np.histogram(np.clip(here, frame.first, 1 + frame.reach), edges)[0])
    eighths = np.ceil(roots / max(float(roots.max()), 1.0) * 8 * frame.bars).astype(int)
    ratios = frame.ratios()
    beyond = np.zeros(frame.width, dtype=bool)
    if walls is not None:
        beyond = ratios > 1 + walls.high if sign > 0 else ratios < 1 - walls.low
    lines = []
    for row in reversed(range(frame.bars)):
        cells = np.clip(eighths - 8 * row, 0, 8)
        lines.append(
            Content.assemble(
                *((BARS[cell], "$text-muted" if far else ink) for cell, far in zip(cells, beyond, strict=True))
            )
        )
    return lines


def _axis(frame: Frame, walls: Walls, has_walls: bool) -> list[Content]:
    low, high = 1 - walls.low, 1 + walls.high
    rule = ["─"] * frame.width
    for ratio in (low, high) if has_walls else ():
        rule[frame.column(ratio)] = "◆"
    words = [" "] * frame.width
    ends = [frame.first, 1 + frame.reach]
    for ratio in [*((low, high) if has_walls else ()), *ends, 1.0]:
        text = compact(ratio, 3)
        begin = min(max(frame.column(ratio) - len(text) // 2, 0), frame.width - len(text))
        if all(each == " " for each in words[max(begin - 1, 0) : begin + len(text) + 1]):
            words[begin : begin + len(text)] = text
    return [Content.styled("".join(rule), "$text-muted"), Content.styled("".join(words), "$foreground")]
