"""The widgets of the main screen, and how they are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal

from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.format.step_word import worded
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.parts.over_another import MainScreen
from rlplay.ui.parts.splits import Splits
from rlplay.ui.session.source import Source
from rlplay.ui.status.footer import Footer
from rlplay.ui.status.status_lines import Banner, Header, PhaseBar
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import PANELS

BESIDE = 3
"""Panels that a large screen shows beside the token."""
VIEWS = ("answers", "token", "curves")


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
        self.view = "answers"

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

    def show_view(self, view: str) -> None:
        """Show the answers, the token or the curves; on a wide screen, smaller or larger curves."""
        self.view = view
        for each in VIEWS:
            self.main.set_class(each == view, f"-view-{each}")

    def show_curves(self) -> None:
        """Bring the curves into view."""
        if self.narrow:
            self.show_view("curves")

    def focus(self, panel: str) -> None:
        """Bring the one of `PANELS` into view, and give it the keys."""
        if self.narrow:
            self.show_view("answers" if panel == "tokens" else panel)
        (self.rollouts, self.tokens, self.inspector, self.curves.seen[0])[PANELS.index(panel)].focus()

    def turn(self) -> None:
        """Show the next view, and give it the keys."""
        views = VIEWS if self.narrow else ("answers", "curves")
        self.show_view(views[(views.index(self.view) + 1) % len(views)] if self.view in views else views[0])
        (self.curves.seen[0] if self.view == "curves" else self.tokens).focus()

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Show the curves of `metrics`, without the focus; the most that fit, the first of them before the others."""
        if self.narrow and len(metrics) > 1:
            metrics = [name for name in metrics if name != "reward"]  # which is in the header
        if self.narrow and len(metrics) > 1 and self.view != "curves":
            self.show_view("curves")
        self.curves.exhibit(metrics)
