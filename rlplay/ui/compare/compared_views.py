"""One view of two runs, side by side, or one above the other on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget

from rlplay.ui.compare.two_runs import RunPair
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.first_views import DETAILED
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.plot.one_of_two import OneOfTwo
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.several_runs import RunStyle
from rlplay.ui.river.belief_river import River, shared
from rlplay.ui.session.reading import next_belief, next_evaluation
from rlplay.verbs import VIEWS

_NARROW = 110
"""Cells below which the second run is under the first."""
_NAMED = 24
"""Cells for how a run differs."""


class RunPanel(CurvePanel):
    """The view of one of the runs."""

    def action_cycle(self, step: int) -> None:
        """Show the next view, of both runs."""
        assert isinstance(self.view, OneOfTwo)
        at = next(at for at, name in enumerate(VIEWS) if DETAILED[name] == self.view.view)
        self.post_message(Perform(VIEWS[(at + step) % len(VIEWS)]))


class ComparedViews(Widget):
    """Two panels with the same view and the same updates on the axis."""

    DEFAULT_CSS = "ComparedViews { layout: grid; grid-size: 2 1; height: 10; }"

    def __init__(self, styles: Sequence[RunStyle]) -> None:
        super().__init__()
        self.shown = ""
        """The name of the view, of `VIEWS`; empty while the curves are in its place."""
        self.panels = [RunPanel(OneOfTwo(DETAILED[VIEWS[0]], style)) for style in styles]
        self._equal: tuple[object, bool] = None, False

    def compose(self) -> ComposeResult:
        yield from self.panels

    def follow(self, pair: RunPair, styles: Sequence[RunStyle], cursors: Sequence[tuple[int, int]]) -> bool:
        """Read a record that the view lacks, and draw both runs at the compared update, each at its own cursor.

        Returns whether there was one, so that there may be another.
        """
        if not self.shown:
            return False
        view, read = DETAILED[self.shown], _READERS.get(self.shown)
        reads = read is not None and sum(read(session) for session in pair.both) > 0
        first, last = zip(*(session.run.history.extent() for session in pair.both), strict=True)
        sources = [
            PlotData(
                session.run.history, update, session.settings_of(update), replayed=not session.source.live,
                shown=update, cursor=cursor, beliefs=session.run.beliefs, evaluations=session.run.evaluations,
                axis=(min(first), max(last)), world=session.world,
            )
            for session, update, cursor in zip(pair.both, pair.updates(), cursors, strict=True)
        ]  # fmt: skip
        bands = shared(sources) if isinstance(view, River) else ()
        sources = [replace(source, bands=bands) for source in sources]
        states = [(self.shown, view.state(source)) for source in sources]
        if states != self._equal[0]:
            one, other = (view.data(source) for source in sources)
            same = view.of_run and pair.both[0] is pair.both[1]  # one run at two updates goes without saying
            self._equal = states, one is not None and one == other and not same
        for side, (panel, style, source) in enumerate(zip(self.panels, styles, sources, strict=True)):
            named = ", ".join(pair.values(side))
            short = named if len(named) <= _NAMED else f"{named[: _NAMED - 1]}…"
            panel.view = OneOfTwo(view, style, short, styles[1 - side].letter if self._equal[1] else "")
            panel.show(source)
        return reads

    def mark_updates(self, updates: Sequence[int | None]) -> None:
        """Highlight the compared update of each run in views of whole runs."""
        for panel, update in zip(self.panels, updates, strict=True):
            panel.mark_update(update)

    @on(CurvePanel.Moved)
    def _point_both(self, event: CurvePanel.Moved) -> None:
        event.stop()
        for panel in self.panels:
            panel.point(event.update)

    def on_resize(self, event: events.Resize) -> None:
        narrow = event.size.width < _NARROW
        self.styles.grid_size_columns, self.styles.grid_size_rows = (1, 2) if narrow else (2, 1)


_READERS: dict[str, Callable[..., bool]] = {"belief": next_belief, "learning": next_evaluation}
