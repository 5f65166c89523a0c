"""One metric of two runs in one plot: the first as a line, the second dotted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.content import Content

from rlplay.trace.history import History, Series
from rlplay.trace.text import visible
from rlplay.ui.picture import Picture, Size, number
from rlplay.ui.plot import Curve, curves
from rlplay.ui.smooth import told
from rlplay.ui.timeline import heading
from rlplay.ui.views import FIRST, SECOND, Source, manner, signs, with_average

LINE, DOTTED = "━", "┅"


@dataclass(frozen=True)
class Overlay:
    """The first of `names` that is recorded, in the source's run and in the `other`."""

    names: tuple[str, ...]
    other: Callable[[], History]

    @property
    def title(self) -> str:
        """What it shows before anything is known."""
        return heading(self.names[0])

    @property
    def of_run(self) -> bool:
        """Whether it shows the run, update by update."""
        return True

    @property
    def metrics(self) -> tuple[str, ...]:
        """All that it may show."""
        return self.names

    def state(self, source: Source) -> object:
        """Equal where the same is drawn."""
        name, runs = self._metric(source), (source.history, self.other())
        return name, [(run.version(name), run.marks) for run in runs], self._span(source)

    def series(self, source: Source) -> list[Curve]:
        """Both curves; one that has no points yet is left out."""
        (mine, values), (its, others) = self._pair(source)
        both = Curve(mine, values, FIRST), Curve(its, others, SECOND, "dotted" if len(its) > 1 else "line")
        return [curve for curve in both if curve.updates]

    def draw(self, source: Source, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        """Both runs in one plot."""
        series = [each for curve in self.series(source) for each in with_average(curve, smoothing)]
        marks = sorted(set(signs([*source.history.marks, *self.other().marks])))
        if not series:
            return "not computed in either run"
        return curves(series, marks, size, log, told(smoothing), self._span(source), source.room)

    def titles(self, source: Source, cursor: int | None, log: bool, smoothing: float = 0.0) -> tuple[Content, Content]:
        """Above the metric, below both runs' values: at the cursor, else the latest."""
        when = ("" if cursor is None else f" at {cursor}") + manner(log, smoothing)
        values = [_value(series, cursor) for series in self._pair(source)]
        below = Content.assemble(
            (f"{LINE} A ", FIRST), (values[0], "bold $foreground"),
            (f"  {DOTTED} B ", SECOND), (values[1], "bold $foreground"),
        )  # fmt: skip
        return Content.assemble(visible(heading(self._metric(source))), when), below

    def _span(self, source: Source) -> tuple[int, int]:
        """The first and the last update of either run, so that what stands one above the other is the same update."""
        first, last = zip(source.history.extent(), self.other().extent(), strict=True)
        return min(first), max(last)

    def _metric(self, source: Source) -> str:
        known = (name for name in self.names if source.history.series(name)[0] or self.other().series(name)[0])
        return next(known, self.names[0])

    def _pair(self, source: Source) -> tuple[Series, Series]:
        name = self._metric(source)
        return source.history.series(name), self.other().series(name)


def _value(series: Series, cursor: int | None) -> str:
    updates, values = series
    if not updates:
        return "–"
    if cursor is None:
        return number(values[-1])
    value = dict(zip(updates, values, strict=True)).get(cursor)
    return "–" if value is None else number(value)
