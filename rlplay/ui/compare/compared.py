"""The parts of the comparison: answers to the same prompts side by side, and curves of all runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.content import Content

from rlplay.trace.text import visible
from rlplay.ui.compare.side_by_side import align_rows
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.parts.panel_messages import UpdatePicked
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.several_runs import Overlay, RunStyle, Shown
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.worlds.world import World

_SHOWN = (
    ("reward", "rewards/accuracies", "accuracy", "mean_token_accuracy"),
    ("eval_reward", "loss"),
    ("kl", "kl_old", "rewards/margins", "margin", "logps/chosen"),
    ("completions/mean_length", "entropy", "loss"),
)
"""For each panel, the metrics to start with: the panel takes the first one that a run has recorded."""


class PairedTokens(TokenMap):
    """The answers of one of two runs; each prompt and answer begins on the same line as in the partner."""

    partner: PairedTokens | None = None
    groups: Mapping[int, int] | None = None
    """For each group here the partner's group with the same prompt; None: both number them alike."""

    def __init__(self, style: RunStyle) -> None:
        """The title begins with the mark of `style`."""
        super().__init__()
        self.run_style = style

    @property
    def title_room(self) -> int:
        """Cells for the words in the upper border, after the mark."""
        return super().title_room - len(self.run_style.mark) - 1

    def caption(self, title: Content, subtitle: Content) -> None:
        """The words in the border, with the run's mark."""
        super().caption(Content.assemble((f"{self.run_style.mark} ", self.run_style.ink), title), subtitle)

    def _lay_out(self) -> None:
        super()._lay_out()
        if self.partner is not None and self.partner.is_mounted:
            TokenMap._lay_out(self.partner)
            align_rows(self._layout, self.partner._layout, self.partner.groups)
            self.rebuild()
            self.partner.rebuild()


class ComparedPanel(CurvePanel):
    """One metric of all runs."""

    def __init__(self, view: Overlay) -> None:
        super().__init__(view)
        self._runs = view.runs

    def action_cycle(self, step: int) -> None:
        """Show the next recorded metric."""
        names = list(dict.fromkeys(name for _, run in self._runs() for name in run.names()))
        if names:
            shown = next((name for name in self.view.metrics if name in names), names[0])
            self.put(Overlay((names[(names.index(shown) + step) % len(names)],), self._runs))

    def action_open(self) -> None:
        """Compare the update under the cursor."""
        if self.cursor is not None:
            self.post_message(UpdatePicked(self.cursor))

    def clipping(self) -> tuple[str, str]:
        """The text to copy: every value of every run, as comma-separated lines."""
        assert isinstance(self.view, Overlay)
        name, runs = self.view.metric, self._runs()
        columns = [dict(zip(*self.view.points(run), strict=True)) for _, run in runs]
        rows = [["step" if self.view.by_step else "update", *(f"{name} {style.letter}" for style, _ in runs)]]
        rows += [[str(update), *(str(column.get(update, "")) for column in columns)] for update in self._updates()]
        return "the curves' values", "\n".join(map(",".join, rows))

    def _notes(self) -> list[str]:
        assert isinstance(self.view, Overlay)
        marks = ((style, run, mark) for style, run in self._runs() for mark in run.marks)
        here = [(style, mark) for style, run, mark in marks if self.view.places(run, [mark.update]) == [self.cursor]]
        return [visible(f"{style.letter} {mark.text}") for style, mark in here]

    def _updates(self) -> list[int]:
        assert isinstance(self.view, Overlay)
        known = ((run, name) for _, run in self._runs() for name in self.view.metrics)
        return sorted({at for run, name in known for at in self.view.places(run, run.series(name)[0])})


class ComparedPanels(CurvePanels):
    """Several such panels in a row, or with all the room where no run has answers."""

    def __init__(self, runs: Callable[[], Shown], alone: bool = False) -> None:
        super().__init__(stage="curve" if alone else "all")
        self._runs = runs
        self.row: list[CurvePanel] = [ComparedPanel(Overlay(names, runs)) for names in _SHOWN]

    @property
    def _alone(self) -> int:
        return len(self.row) if self.stage == "curve" else 0

    def overlay(self, world: World | None) -> None:
        """Draw the current state of the runs, which play in the same `world`."""
        _, first = self._runs()[0]
        drawn = [panel.show(PlotData(first, world=world)) for panel in self.row]
        if any(drawn):
            self.align()
