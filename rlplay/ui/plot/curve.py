"""One curve of a plot: its numbers, and how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rlplay.trace.numbers import NOISE

FIRST, SECOND, GHOST = "$curve-a", "$curve-b", "$curve-ghost"
"""The colours of the curves of a run, and of updates that it discarded."""
Kind = Literal["line", "dashed", "thin", "points"]
Margins = tuple[int, int]
"""Cells to the left and to the right of a plot."""


@dataclass(frozen=True)
class Curve:
    """One series. A "right" curve has its own scale, written on the right; `band` holds its lower and upper edge.

    "under" shades from the line to 0, "between" to the other curve with this `area`. A `letter` on the curve identifies
    it if line styles are not enough, and a `name` is written near its end. At the updates in `cuts` the curve starts
    again, because the metric then measures another quantity; `parts` names what it measures from each update on. Values
    below `noise` count as 0. The scale reaches from the lowest to the highest of `ends`, too. `newest` marks the last
    point.
    """

    updates: Sequence[int]
    values: Sequence[float]
    style: str
    kind: Kind = "line"
    side: Literal["left", "right"] = "left"
    band: tuple[Sequence[float], Sequence[float]] | None = None
    area: Literal["", "under", "between"] = ""
    letter: str = ""
    name: str = ""
    cuts: Sequence[int] = ()
    parts: tuple[tuple[int, str], ...] = ()
    noise: float = NOISE
    ends: tuple[float, ...] = ()
    newest: bool = False
