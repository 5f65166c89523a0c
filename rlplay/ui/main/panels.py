"""The widgets of the main screen, and how they are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal

from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.format.step_word import worded
from rlplay.ui.main.stages import SHOWS, VIEWS
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.parts.over_another import MainScreen
from rlplay.ui.parts.splits import Splits
from rlplay.ui.session.source import Source
from rlplay.ui.status.footer import Footer
from rlplay.ui.status.status_lines import Banner, Header, PhaseBar
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import PANELS, STAGES

BESIDE = 3
"""Panels that a large screen shows beside the token."""


class Panels:
    """The main screen, its widgets, and which of them are in view."""

    def __init__(self, source: Source) -> None:
        """For a run that comes from `source`."""
        self.header, self.phases, self.banner = Header(), PhaseBar(), Banner()
        self.rollouts, self.tokens = AnswerList(id="rollouts"), TokenMap(id="tokens")
        self.inspector, self.curves = Inspector(id="inspector"), CurvePanels(not source.live, BESIDE)
        self.narrator, self.keys = Narrator(), Footer(without=() if source.script else ("tour",))
        self.splits = Splits(self.rollouts, self.inspector, self.curves, id="body")
        self.banner.border_title = "The engine has ended" if source.live else "Cannot read the run"
        self.main = MainScreen()
        self.stage = "all"
        self.set_stage(source.stage)
        if source.stage in VIEWS:
            self.curves.exhibit([VIEWS[source.stage]])

    def compose(self) -> ComposeResult:
        """The main screen, top to bottom."""
        yield self.header
        yield self.phases
        yield self.banner
        with self.splits:
            with Horizontal(id="answers"):
                yield self.rollouts
                yield self.tokens
            yield self.curves.beside
            yield self.inspector
        yield self.curves
        yield self.narrator
        yield self.keys

    @property
    def narrow(self) -> bool:
        """Whether there is room for one of the views only."""
        return self.main.has_class("-narrow")

    def speak(self, step_word: str) -> None:
        """Name what the policy samples in the parts that are written about tokens."""
        self.tokens.step_word = step_word
        self.inspector.border_title = worded("Token", step_word)
        self.inspector.words = worded(self.inspector.EMPTY, step_word)
        self.keys.speak(step_word)

    def mark_past(self, past: bool) -> None:
        """Show that the update on the screen is not the newest; a class of the screen would style every widget anew."""
        for panel in (self.rollouts, self.tokens, self.inspector, *self.curves.panels):
            panel.set_class(past, "-past")

    def scroll(self, y: float) -> None:
        """Scroll to line `y`: answers and their tokens are side by side, so they scroll together."""
        for panel in (self.tokens, self.rollouts):
            if panel.scroll_y != y:
                panel.scroll_to(y=y, animate=False, immediate=True)

    def set_stage(self, stage: str) -> None:
        """Give the room to `stage`, one of `STAGES`."""
        self.stage = stage
        for each in STAGES:
            self.main.set_class(each == stage, f"-stage-{each}")

    def show_stage(self, stage: str) -> None:
        """Give the room and the keys to `stage`."""
        self.set_stage(stage)
        if stage in VIEWS:
            self.curves.put_up(VIEWS[stage])
        else:
            {"token": self.inspector, "curve": self.curves.seen[0]}.get(stage, self.tokens).focus()

    def show_curves(self) -> None:
        """Bring the curves into view."""
        if "curves" not in SHOWS[self.stage] or (self.narrow and self.stage == "all"):
            self.set_stage("curve" if self.narrow else "all")

    def focus(self, panel: str) -> None:
        """Bring the one of `PANELS` into view, and give it the keys."""
        if panel == "curves":
            self.show_curves()
        elif panel not in SHOWS[self.stage] or (self.narrow and panel == "token"):
            self.set_stage("token" if panel == "token" and self.narrow else "all")
        (self.rollouts, self.tokens, self.inspector, self.curves.seen[0])[PANELS.index(panel)].focus()

    def turn(self, stages: Sequence[str]) -> None:
        """Give the room and the keys to the next of `stages`."""
        at = stages.index(self.stage) + 1 if self.stage in stages else 0
        self.show_stage(stages[at % len(stages)])

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Show the curves of `metrics`, without the focus; the most that fit, the first of them before the others."""
        if self.narrow and len(metrics) > 1:
            metrics = [name for name in metrics if name != "reward"]  # which is in the header
        if self.narrow and len(metrics) > 1 and self.stage == "all":
            self.set_stage("curve")
        self.curves.exhibit(metrics)
