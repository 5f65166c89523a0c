"""A view of one of two compared runs: its titles say which run, how it differs, and whether both are equal."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from rlplay.ui.plot.curve import Margins
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.several_runs import RunStyle
from rlplay.ui.plot.view import View


@dataclass(frozen=True)
class OneOfTwo:
    """`view` of the run drawn as `style`; `named` says how the run differs, `equal` names an equal run."""

    view: View
    style: RunStyle
    named: str = ""
    equal: str = ""

    @property
    def title(self) -> str:
        return self.view.title

    @property
    def metrics(self) -> tuple[str, ...]:
        return self.view.metrics

    @property
    def of_run(self) -> bool:
        return self.view.of_run

    def state(self, source: PlotData) -> object:
        return self.view.state(source)

    def margins(self, source: PlotData, log: bool, lines: int) -> Margins:
        return self.view.margins(source, log, lines)

    def draw(self, source: PlotData, size: Size, log: bool, smoothing: float = 0.0) -> Picture | str:
        return self.view.draw(source, size, log, smoothing)

    def titles(
        self, source: PlotData, cursor: int | None, log: bool, smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        above, below = self.view.titles(source, cursor, log, smoothing)
        words = "".join(f" {each} ·" for each in (self.named, self.equal and f"equal to {self.equal}") if each)
        return Content.assemble((self.style.mark, self.style.ink), words or " ·", " ", above), below
