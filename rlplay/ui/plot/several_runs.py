"""One metric of several runs in one plot, with a style for each run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from textual.content import Content

from rlplay.trace.clock import by_step
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
        return name, [(style, run.version(name), run.marks) for style, run in self.runs()], self._span(), self.by_step

    @property
    def by_step(self) -> bool:
        """Whether the axis is of their trainers' steps, as the runs' updates are of different ones."""
        return by_step([run.clock for _, run in self.runs()])

    def places(self, run: History, updates: Iterable[int]) -> list[int]:
        """Where updates of a run are on the axis."""
        return [run.clock.place(update) for update in updates] if self.by_step else list(updates)

    def points(self, run: History) -> Series:
        """The places and the values of a run."""
        updates, values = run.series(self.metric)
        return self.places(run, updates), values

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
            updates, values = self.points(run)
            kind = style.kind if len(updates) > 1 else "line"
            if updates:
                letter = style.letter if len(runs) > 2 else ""
                area: Literal["", "between"] = "between" if len(runs) == 2 else ""
                breaks = self.places(run, cuts(run, self.metric))
                found.append(
                    Curve(updates, values, style.ink, kind, area=area, letter=letter, cuts=breaks, newest=not letter)
                )
        return found

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        """All runs in one plot."""
        series = [each for curve in self.series(source) for each in with_average(curve, smoothing)]
        events = ((run, at, sign) for _, run in self.runs() for at, sign in signs(run.marks))
        marks = sorted({(self.places(run, [at])[0], sign) for run, at, sign in events})
        if not series:
            return "No run has computed this so far."
        span = self._span()
        start = max(span[0], min(1, *(min(curve.updates) for curve in series)))
        words = smoothing_label(smoothing)
        ends = (f"step {start}", f"{span[1]:,}") if self.by_step else None
        return curves(series, marks, size, log, words, (start, span[1]), source.room, source.tinted, ends=ends)

    def titles(
        self, _source: PlotData, cursor: int | None, log: bool, smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the metric; below, the runs' values at the cursor, or the latest."""
        unit = "step " * self.by_step
        when = ("" if cursor is None else f" at {unit}{cursor:{',' if unit else ''}}") + manner(log, smoothing)
        name = self.metric
        below = [
            Content.assemble((f"{style.mark} ", style.ink), (self._value(run, cursor), VALUE))
            for style, run in self.runs()
        ]
        every = [self.points(run) for _, run in self.runs()]
        same = ["equal at every update"] * (
            len(every) > 1 and bool(every[0][0]) and every.count(every[0]) == len(every)
        )
        return Content.assemble(visible(heading(name)), when), Content(" · ").join([*below, *map(Content, same)])

    def _value(self, run: History, cursor: int | None) -> str:
        """The value of a run at a place of the axis, or its latest one."""
        updates, values = run.series(self.metric)
        if cursor is not None and self.by_step:
            cursor = run.clock.update_at(cursor)
        elif cursor is None and updates:
            cursor = updates[-1]
        value = None if cursor is None else dict(zip(updates, values, strict=True)).get(cursor)
        return "–" if value is None else number(value)

    def _span(self) -> tuple[int, int]:
        """The first and the last update of any run, so that stacked plots share their columns."""
        first, last = zip(*(self.places(run, run.extent()) for _, run in self.runs()), strict=True)
        return min(first), max(last)

    @property
    def metric(self) -> str:
        """The metric that is shown."""
        known = (name for name in self.names if any(run.series(name)[0] for _, run in self.runs()))
        return next(known, self.names[0])
