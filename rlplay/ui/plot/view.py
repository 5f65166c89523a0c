"""What a view of a panel is: what it shows, how it is drawn, and the texts above and below the plot."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from textual.content import Content

from rlplay.trace.history import Mark
from rlplay.ui.format.legend import EVENT_MARKS
from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.smoothing import smoothing_label

VALUE = "bold $foreground"


class View(Protocol):
    """One view of a panel."""

    @property
    def title(self) -> str:
        """The title of an empty panel."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics it shows, for the help and for the cursor."""

    @property
    def of_run(self) -> bool:
        """Whether its horizontal axis is the updates of the run, so that it can show the cursor."""

    def state(self, source: PlotData) -> object:
        """Equal for sources with equal drawings."""

    def margins(self, source: PlotData, log: bool, lines: int, /) -> Margins:
        """The cells to the left and to the right of its plot over the updates; (0, 0) if it has none."""

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float, /) -> Picture | str:
        """The plot, or a sentence why there is none, with keys between backticks."""

    def titles(self, source: PlotData, cursor: int | None, log: bool, smoothing: float, /) -> tuple[Content, Content]:
        """The texts of the upper and the lower border: names and values, at the cursor or the latest.

        Values are never smoothed; the title says if the curve is.
        """


class OfUpdate:
    """Base of the views of one update, not of the run: they have no cursor and share no columns with others."""

    of_run = False
    metrics: tuple[str, ...] = ()

    def margins(self, _source: PlotData, _log: bool, _lines: int) -> Margins:
        """None."""
        return 0, 0


class Detailed(View, Protocol):
    """A view that a comparison of runs can show of each of them."""

    def data(self, source: PlotData) -> object:
        """What is drawn, equal for equal drawings of two runs; None before there is anything."""


def signs(marks: Iterable[Mark]) -> list[tuple[int, str]]:
    """The signs of the marks, for the axis."""
    return [(mark.update, EVENT_MARKS[mark.kind]) for mark in marks]


def manner(log: bool, smoothing: float) -> str:
    """How the curve is drawn (smoothed, log), for its title."""
    return "".join(f" · {word}" for word in (smoothing_label(smoothing), "log" * log) if word)
