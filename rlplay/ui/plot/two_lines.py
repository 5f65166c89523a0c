"""Two metrics as lines in one plot, such as the reward over a gold score, each with its held-out values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from textual.content import Content

from rlplay.trace.metrics import pair_of, titled
from rlplay.trace.numbers import number
from rlplay.trace.text import visible
from rlplay.ui.plot.curve import FIRST, GHOST, SECOND, Curve
from rlplay.ui.plot.curve_view import BEFORE, GLYPHS, CurveView, Trace, cuts, discarded_legend
from rlplay.ui.plot.drawn_curves import POINT
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import VALUE, manner

_INKS = FIRST, SECOND
_KINDS: tuple[Literal["line", "dashed"], ...] = "line", "dashed"


@dataclass(frozen=True)
class TwoLines(CurveView):
    """Either each line has its own scale, the first at the left and the second at the right, or both share one."""

    shared: bool = False

    def series(self, source: PlotData) -> list[Curve]:
        """Grey curves of discarded updates, then the held-out values and the lines of both metrics."""
        found = []
        for at, (trace, style) in enumerate(zip(self.traces, _INKS, strict=True)):
            history, breaks = source.history, cuts(source.history, trace.metric)
            line, points = history.series(trace.metric), history.series(f"eval_{trace.metric}")
            area: Literal["", "between"] = "between" if self.shared else ""
            drawn = Curve(*line, style, _KINDS[at], trace.side, area=area, cuts=breaks, newest=True)
            found += [drawn] * bool(line[0])
            found += [Curve(*points, style, "points", trace.side, cuts=breaks)] * bool(points[0])
            for given_up in history.abandoned(trace.metric)[-1:]:
                found.append(Curve(*given_up, GHOST, "thin", trace.side, name="" if at else BEFORE, cuts=breaks))
        return found

    def titles(
        self, source: PlotData, cursor: int | None, log: bool, smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """A border for each line: its value, its scale, and its value on held-out prompts."""
        when = source.at(cursor) + manner(log, smoothing)
        first, second = (self._legend_of(at, source, cursor) for at in (0, 1))
        head, tail = (self._held_out(at, source, cursor) for at in (0, 1))
        scales = (" · same scale", "") if self.shared else (" · left", " · right")
        name = self.traces[0].label
        below = [Content.assemble(second, scales[1], tail), *discarded_legend(source.history, self.traces[0].metric)]
        return Content.assemble(f"{name} ", first, when, scales[0], head), Content(" · ").join(below)

    def _legend_of(self, at: int, source: PlotData, cursor: int | None) -> Content:
        trace, glyph = self.traces[at], GLYPHS[_KINDS[at]]
        name = f"{trace.label} " if at else ""
        return Content.assemble((f"{glyph} ", _INKS[at]), name, (_value(source, trace.metric, cursor), VALUE))

    def _held_out(self, at: int, source: PlotData, cursor: int | None) -> Content:
        metric = f"eval_{self.traces[at].metric}"
        if not source.history.series(metric)[0]:
            return Content("")
        return Content.assemble(" · ", (f"{POINT} ", _INKS[at]), f"held out {_value(source, metric, cursor)}")


def _value(source: PlotData, metric: str, cursor: int | None) -> str:
    """The value at the cursor, or the latest."""
    updates, values = source.history.series(metric)
    at = updates[-1] if cursor is None and updates else cursor
    value = dict(zip(updates, values, strict=True)).get(at) if at is not None else None
    return "–" if value is None else number(value)


def two_lines(name: str) -> TwoLines | None:
    """The view of "reward over gold/helpful/mean", two scales, or "reward and gold/correct/mean", one; else None."""
    found = pair_of(name)
    if found is None:
        return None
    first, shared, second = found
    labels = [visible(titled(metric)) for metric in (first, second)]
    short = labels[1].replace("Gold score", "gold")
    side: Literal["left", "right"] = "left" if shared else "right"
    return TwoLines(labels[0], (Trace(first, labels[0]), Trace(second, short, side=side)), shared=shared)
