"""The widgets of the main screen, and how they are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widget import Widget

from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.answers.conversation import Conversation
from rlplay.ui.answers.pair_panel import PairPanel
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.curves.first_views import LARGE
from rlplay.ui.format.step_word import worded
from rlplay.ui.main.stage_tabs import StageTabs
from rlplay.ui.main.stages import APART, SHOWS, SMALL, VIEWS, WIDE
from rlplay.ui.narrator.narrator import Narrator
from rlplay.ui.parts.over_another import MainScreen
from rlplay.ui.parts.splits import Splits
from rlplay.ui.session.session import Session
from rlplay.ui.session.source import Source
from rlplay.ui.status.footer import Footer
from rlplay.ui.status.starting import Starting
from rlplay.ui.status.status_lines import Banner, Header, PhaseBar
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import PANELS, STAGES

BESIDE = 3
"""Panels that a large screen shows beside the token."""


def _useless(source: Source) -> tuple[str, ...]:
    """The verbs whose keys the last line leaves out: what they do needs a lesson, or several stages."""
    return (*("tour",) * (not source.script), *("panel",) * source.curves_only)


class Panels:
    """The main screen, its widgets, and which of them are in view."""

    def __init__(self, source: Source) -> None:
        """For a run that comes from `source`."""
        self.header, self.phases, self.banner = Header(), PhaseBar(), Banner()
        self.tabs = StageTabs(source.stage)
        self.rollouts, self.tokens = AnswerList(id="rollouts"), TokenMap(id="tokens")
        self.inspector, self.curves = Inspector(id="inspector"), CurvePanels(not source.live, BESIDE, source.stage)
        self.narrator, self.keys = Narrator(), Footer(without=_useless(source))
        self.pair, self.conversation = PairPanel(id="one-pair"), Conversation(id="conversation")
        self.side = Horizontal(id="side")
        self.splits = Splits(self.rollouts, self.side, self.curves, id="body")
        self.starting = Starting(source)
        self.banner.border_title = "The engine has ended" if source.live else "Cannot read the run"
        self.main = MainScreen()
        self.main.set_class(source.own_engine, "-starting")
        self.main.set_class(source.curves_only, "-no-answers")
        self.own = self.stage = source.stage
        self._mark()

    def compose(self) -> ComposeResult:
        """The main screen, top to bottom."""
        yield self.header
        with Horizontal(id="phases"):
            yield self.phases
            yield self.tabs
        yield self.banner
        yield self.starting
        with self.splits:
            with Horizontal(id="answers"):
                yield self.rollouts
                yield self.tokens
            yield self.pair
            yield self.conversation
            yield self.curves.subject
            with self.side:
                yield self.curves.beside
                yield self.inspector
        yield self.curves
        yield self.narrator
        yield self.keys

    @property
    def narrow(self) -> bool:
        """Whether there is room for one of the views only."""
        return self.main.has_class("-narrow")

    @property
    def wide(self) -> bool:
        """Whether the answers leave room for the token beside them."""
        return self.main.has_class("-wide") or self.main.has_class("-huge")

    def speak(self, step_word: str) -> None:
        """Name what the policy samples in the parts that are written about tokens."""
        self.tokens.step_word = step_word
        self.inspector.border_title = worded("Token", step_word)
        self.inspector.words = worded(self.inspector.EMPTY, step_word)
        self.keys.speak(step_word)

    def follow_start(self, session: Session) -> None:
        """Show the panels once the engine has said where it is, or cannot."""
        self.starting.show(session)
        if session.status is not None or session.failed is not None:
            self.main.remove_class("-starting")

    def mark_past(self, past: bool) -> None:
        """Show that the update on the screen is not the newest; a class of the screen would style every widget anew."""
        for panel in (
            self.rollouts, self.tokens, self.inspector, self.pair, self.conversation, *self.curves.panels,
        ):  # fmt: skip
            panel.set_class(past, "-past")

    def scroll(self, y: float) -> None:
        """Scroll to line `y`: answers and their tokens are side by side, so they scroll together."""
        together = self.rollouts.display
        for panel in (self.tokens, self.rollouts):
            if together and panel.scroll_y != y:
                panel.scroll_to(y=y, animate=False, immediate=True)

    def set_stage(self, stage: str) -> None:
        """Give the room to `stage`, one of `STAGES`."""
        if stage != self.stage:
            self.stage = stage
            self._mark()
            self.tabs.mark(stage)
            self.splits.reset()
            self.curves.set_stage(stage)

    def _mark(self) -> None:
        stage = "all" if self.main.has_class("-knobs") else self.stage
        self.main.remove_class(*(f"-stage-{each}" for each in STAGES), update=False)
        self.main.add_class(f"-stage-{stage}")  # styles every widget anew, once

    def beside_knobs(self, open_now: bool) -> None:
        """Show the answers and the token, whatever the stage is: what a change would do to them shows there."""
        self.splits.reset()
        self.main.set_class(open_now, "-knobs")
        self._mark()

    def show_stage(self, stage: str) -> None:
        """Give the room and the keys to `stage`."""
        self.set_stage(stage)
        self.subject.focus()

    @property
    def subject(self) -> Widget:
        """What has the keys as the stage begins; the cursor of a token moves in the answer."""
        alone: dict[str, Widget] = {"pair": self.pair, "conversation": self.conversation}
        return self.curves.first if self.stage in ("curve", *LARGE) else alone.get(self.stage, self.tokens)

    def make_room(self, name: str) -> None:
        """Show the curves, with room for the curve or view `name`, unless they have it already."""
        of_its_own = VIEWS.get(name)
        if of_its_own and (self.narrow or self.stage != "all") and self.curves.offers(name):
            self.set_stage(of_its_own)
        elif (self.narrow or self.stage != "all") and name not in self.curves.shown and not self._beside_the_map:
            self.set_stage("curve")

    @property
    def _beside_the_map(self) -> bool:
        """Whether a map has the room and a curve has some beside it."""
        return self.stage == "map" and not self.narrow

    def focus(self, panel: str) -> None:
        """Bring the one of `PANELS` into view, and give it the keys; the curves, where there is nothing else."""
        if self.main.has_class("-no-answers"):
            self.curves.first.focus()
            return
        if panel == "curves" and self.own in LARGE:
            self.set_stage(self.own)
        elif panel not in (SMALL if self.narrow else WIDE if self.wide else SHOWS)[self.stage]:
            self.set_stage(APART[panel] if self.narrow or panel == "curves" else "all")
        tokens = self.subject if self.stage in ("pair", "conversation") else self.tokens  # which are these there
        (self.rollouts, tokens, self.inspector, self.curves.first)[PANELS.index(panel)].focus()

    @property
    def presenting(self) -> bool:
        """Whether only the subject is shown, and the sentence about it."""
        return self.main.has_class("-presenting")

    def present(self) -> None:
        """Show the subject alone, with the sentence about it; again all of the stage."""
        self.splits.reset()
        self.main.toggle_class("-presenting")
        if self.presenting and self.stage == "all":
            self.show_stage("answers" if self.own == "all" else self.own)

    def turn(self, stages: Sequence[str]) -> None:
        """Give the room and the keys to the next of `stages`."""
        at = stages.index(self.stage) + 1 if self.stage in stages else 0
        self.show_stage(stages[at % len(stages)])

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Show the curves of `metrics`, without the focus; the most that fit, the first of them before the others."""
        if self.narrow and (len(metrics) > 1 or self.stage not in ("all", "curve")):
            metrics = [name for name in metrics if name != "reward"]  # which is in the header
        if self.narrow and len(metrics) > 1 and self.stage == "all":
            self.set_stage("curve")
        self.curves.exhibit(metrics)
