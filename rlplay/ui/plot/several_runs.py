"""One metric of several runs in one plot, with a style for each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from textual.content import Content

from rlplay.trace.history import History, Series
from rlplay.trace.metrics import heading
from rlplay.trace.numbers import number
from rlplay.trace.text import visible
from rlplay.ui.plot.curve import Curve, Margins
from rlplay.ui.plot.curve_view import cuts, with_average
from rlplay.ui.plot.drawn_curves import curves, margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.smoothing import smoothing_label
from rlplay.ui.plot.view import VALUE, manner, signs
from rlplay.ui.theme.curve_inks import CURVES


@dataclass(frozen=True)
class RunStyle:
    """How a compared run is drawn: its letter, colour and kind of line."""

    letter: str
    ink: str
    kind: Literal["line", "dashed", "thin"]

    @property
    def mark(self) -> str:
        """A piece of its line, and its letter."""
        return f"{_GLYPHS[self.kind]} {self.letter}"


_GLYPHS = {"line": "━", "dashed": "┅", "thin": "─"}
RUN_STYLES = tuple(
    RunStyle(letter, f"${name}", "line" if place == 0 else "dashed" if place == 1 else "thin")
    for place, (letter, name) in enumerate(CURVES.items())
)
"""One for each run that can be compared at once."""

Shown = Sequence[tuple[RunStyle, History]]
"""The compared runs, the two shown side by side first."""


@dataclass(frozen=True)
class Overlay:
    """All `runs` in one plot: the first of `names` that any of them has recorded."""

    names: tuple[str, ...]
    runs: Callable[[], Shown]

    @property
    def title(self) -> str:
        """The title before any data."""
        return heading(self.names[0])

    @property
    def of_run(self) -> bool:
        """Whether the view has curves over the updates: yes."""
        return True

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that it may show."""
        return self.names

    def state(self, _source: PlotData) -> object:
        """Equal for equal drawings."""
        name = self.metric
        return name, [(style, run.version(name), run.marks) for style, run in self.runs()], self._span()

    def margins(self, source: PlotData, log: bool, lines: int) -> Margins:
        """The cells of the labels."""
        return margins(self.series(source), log, lines)

    def series(self, _source: PlotData) -> list[Curve]:
        """The curves of all runs that have points.

        Two runs differ by their lines; with more, each curve also has a letter.
        """
        found = []
        runs = self.runs()
        for style, run in reversed(runs):  # later curves are drawn on top
            updates, values = run.series(self.metric)
            kind = style.kind if len(updates) > 1 else "line"
            if updates:
                letter = style.letter if len(runs) > 2 else ""
                area: Literal["", "between"] = "between" if len(runs) == 2 else ""
                breaks = cuts(run, self.metric)
                found.append(
                    Curve(updates, values, style.ink, kind, area=area, letter=letter, cuts=breaks, newest=not letter)
                )
        return found

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        """All runs in one plot."""
        series = [each for curve in self.series(source) for each in with_average(curve, smoothing)]
        marks = sorted(set(signs([mark for _, run in self.runs() for mark in run.marks])))
        if not series:
            return "No run has computed this so far."
        span = self._span()
        start = max(span[0], min(1, *(min(curve.updates) for curve in series)))
        words = smoothing_label(smoothing)
        return curves(series, marks, size, log, words, (start, span[1]), source.room, source.tinted)

    def titles(
        self, _source: PlotData, cursor: int | None, log: bool, smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the metric; below, the runs' values at the cursor, or the latest."""
        when = ("" if cursor is None else f" at {cursor}") + manner(log, smoothing)
        name = self.metric
        below = [
            Content.assemble((f"{style.mark} ", style.ink), (_value(run.series(name), cursor), VALUE))
            for style, run in self.runs()
        ]
        every = [run.series(name) for _, run in self.runs()]
        same = ["equal at every update"] * (
            len(every) > 1 and bool(every[0][0]) and every.count(every[0]) == len(every)
        )
        return Content.assemble(visible(heading(name)), when), Content(" · ").join([*below, *map(Content, same)])

    def _span(self) -> tuple[int, int]:
        """The first and the last update of any run, so that stacked plots share their columns."""
        first, last = zip(*(run.extent() for _, run in self.runs()), strict=True)
        return min(first), max(last)

    @property
    def metric(self) -> str:
        """The metric that is shown."""
        known = (name for name in self.names if any(run.series(name)[0] for _, run in self.runs()))
        return next(known, self.names[0])


def _value(series: Series, cursor: int | None) -> str:
    updates, values = series
    if not updates:
        return "–"
    if cursor is None:
        return number(values[-1])
    value = dict(zip(updates, values, strict=True)).get(cursor)
    return "–" if value is None else number(value)
