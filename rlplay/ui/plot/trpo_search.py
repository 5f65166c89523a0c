"""TRPO's search for a step, during and after it: the residuals of conjugate gradient, and the steps tried."""

from __future__ import annotations

import math

from textual.content import Content

from rlplay.trace.numbers import number
from rlplay.trace.records import Searched
from rlplay.ui.format.bars import bar
from rlplay.ui.format.number_cells import plain
from rlplay.ui.plot.curve import FIRST
from rlplay.ui.plot.picture import Axes, Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import OfUpdate
from rlplay.ui.words.step_search import NOTHING, split

NOT_YET = "No data yet: phase ④ searches for a step within the KL limit. `.` takes one iteration."
QUIET, STRONG, BEYOND = "$text-muted", "bold $foreground", "$warning"
_DECADES = 3.0
"""Orders of magnitude of the residual between a full bar and none."""


class Search(OfUpdate):
    """A view of one update's search, not of the run."""

    title = "Trust region"
    metrics = ("kl_old_exact", "step_fraction", "cg_residual", "surrogate_gain")

    def state(self, source: PlotData) -> object:
        """The update, and the progress of its search."""
        live = source.live
        return None if live is None else (live.number, len(live.searched), len(live.steps)), source.settings.max_kl

    def draw(
        self,
        source: PlotData,
        size: Size,
        log: bool,  # noqa: ARG002 - a view's signature
        _smoothing: float = 0.0,
    ) -> Picture | str:
        """A bar for each iteration of conjugate gradient; below, a line for each iteration, or for each step tried."""
        if source.live is None or not source.live.searched:
            return NOTHING if source.live is not None and source.live.steps else source.coming(NOT_YET)
        found, tried = split(source.live.searched)
        limit = source.settings.max_kl
        table = [_trial(trial, limit) for trial in tried] if tried else [_iteration(each) for each in found]
        heading = f"{'step':>5}{'KL':>9}{'gain':>9}" if tried else f"{'CG':>5}{'residual':>10}{'gain at limit':>15}"
        room = max(size.height - 2, 1)
        lines = [_residuals(found, size.width), Content.styled(heading, QUIET), *table[-room:]]
        frame = Axes(size.width, 0, size.width - 1, 0, 1)
        return Picture(Content("\n").join(line.truncate(size.width) for line in lines), frame)

    def titles(
        self, source: PlotData, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, the KL of the step taken and its limit; below, the gain of the step."""
        limit = number(source.settings.max_kl)
        tried = split(source.live.searched)[1] if source.live is not None else []
        if not tried:
            return Content(f"{self.title} · KL ≤ {limit}"), Content("")
        if not tried[-1].accepted:
            return Content(f"{self.title} · KL ≤ {limit}"), Content(f"{len(tried)} steps tried, none taken")
        head = Content.assemble(f"{self.title} · KL ", (number(tried[-1].kl or 0.0), STRONG), f" of {limit}")
        return head, Content(f"step {plain(tried[-1].step)} · gain {number(tried[-1].gain)}")


def _residuals(found: list[Searched], width: int) -> Content:
    """The residuals on a logarithmic scale, one bar each, and the last one as a number."""
    if not found:
        return Content("")
    summary = f" {found[-1].iteration} of {found[-1].iterations} · residual {number(found[-1].residual or 0.0, 2)}"
    room = max(width - len("CG ") - len(summary), 0)
    bars = "".join(_bar(each.residual or 0.0) for each in found)[-room:] if room else ""
    return Content.assemble(("CG ", QUIET), (bars, FIRST), (summary, QUIET))


def _bar(residual: float) -> str:
    height = 1 + math.log10(max(residual, 1e-9)) / _DECADES
    return bar(height, least=1)


def _iteration(each: Searched) -> Content:
    return Content(f"{each.iteration:>5}{number(each.residual or 0.0, 2):>10}{number(each.gain):>15}")


def _trial(trial: Searched, limit: float) -> Content:
    over = trial.kl is None or not trial.kl <= limit
    mark, why = ("✓", "taken") if trial.accepted else ("✗", "too far" if over else "no gain")
    style = STRONG if trial.accepted else QUIET
    divergence = f"{number(math.nan if trial.kl is None else trial.kl):>9}"
    return Content.assemble(
        (f"{plain(trial.step):>5}", style),
        (divergence, BEYOND if over else style),
        (f"{number(trial.gain):>9}  {mark} {why}", style),
    )
