"""The state of the main screen: its session, its panels and the chosen view.

Verbs, dialogues and the refresh use this class; `app.py` completes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from textual.screen import Screen
from textual.theme import Theme

from rlplay.trace.lenses import LENSES, Lens, automatic
from rlplay.trace.records import Choice
from rlplay.ui.layout.answer_order import Sort
from rlplay.ui.lean import slim
from rlplay.ui.other_runs import OtherRuns
from rlplay.ui.session.facts import facts_of
from rlplay.ui.session.finder import Finder
from rlplay.ui.session.folding import Folding
from rlplay.ui.session.happenings import Source
from rlplay.ui.session.preview import Preview
from rlplay.ui.session.session import Session
from rlplay.ui.terminal.gate import GatedApp
from rlplay.ui.theme.themes import THEMES
from rlplay.ui.widgets.curves import CurvePanels
from rlplay.ui.widgets.footer import Footer
from rlplay.ui.widgets.inspector import Inspector
from rlplay.ui.widgets.narrator import Narrator, Spot
from rlplay.ui.widgets.over_another import MainScreen
from rlplay.ui.widgets.rollouts import Rollouts
from rlplay.ui.widgets.status import Banner, Header, PhaseBar
from rlplay.ui.widgets.tokens import Tokens
from rlplay.ui.words.step_word import worded

if TYPE_CHECKING:
    from rlplay.ui.screens.knobs import KnobsScreen


class Labels(Protocol):
    """The dialogue for labelling pairs, while it is open."""

    async def action_choose(self, choice: Choice) -> None:
        """Label the current pair."""


BESIDE = 3
"""Panels that a large screen shows beside the token."""
VIEWS = ("answers", "token", "curves")

_INSTEAD = ("credit", "advantages", "probability")
"""The statistics that colour a finished update instead of the change in probability, by which has values."""


class Playground(GatedApp):
    """The state of the main screen."""

    def __init__(self, source: Source, others: Sequence[Source], show_others: Callable[[], None]) -> None:
        """Show `source`; `show_others` shows the runs `others`."""
        self._themes: tuple[int, dict[str, Theme]] = -1, {}
        slim()
        super().__init__()
        self.session = Session(source)
        self.other_runs = OtherRuns(self, self.session, others, show_others)
        self.preview = Preview(self.session, source.send)
        self.knobs: KnobsScreen | None = None
        self.labels: Labels | None = None
        self.lens_choice: str | None = None
        self.signs = False
        self.sort = Sort()
        self.finder = Finder()
        self.folding = Folding()
        self.view = "answers"
        self.own_keys: dict[str, str] = {}  # the user's keys, by action
        self.unasked = False  # whether the newest command was the screen's own
        self.next_scenario: str | None = None  # the scenario to open after this one,
        self.next_step = 0  # and the step of its lesson to begin at
        self.main: Screen[Any]
        self.header, self.phases, self.banner = Header(), PhaseBar(), Banner()
        self.rollouts, self.tokens = Rollouts(id="rollouts"), Tokens(id="tokens")
        self.inspector, self.curves = Inspector(id="inspector"), CurvePanels(not source.live, BESIDE)
        self.narrator, self.keys = Narrator(), Footer(without=() if source.script else ("tour",))

    @property
    def available_themes(self) -> dict[str, Theme]:
        """Textual's themes and ours, available from the start so that TEXTUAL_THEME can name them."""
        registered = super().available_themes
        if len(registered) != self._themes[0]:  # Textual asks for them at every line that it draws
            self._themes = len(registered), registered | {theme.name: theme for theme in THEMES}
        return self._themes[1]

    def notify(self, message: str, **more: Any) -> None:
        """Show a message at the top right, unless it is there already."""
        if all(each.message != message or each.has_expired for each in self._notifications):
            super().notify(message, **more)

    def speak(self, step_word: str) -> None:
        """Name what the policy samples in the parts that are written about tokens."""
        self.tokens.step_word = step_word
        self.inspector.border_title = worded("Token", step_word)
        self.inspector.words = worded(self.inspector.EMPTY, step_word)
        self.keys.speak(step_word)

    def take_keys(self, own: dict[str, str]) -> None:
        """Take the user's keys, by action, in Textual's names."""
        self.own_keys = own
        self.set_keymap(own)
        self.keys.rename(own)

    @property
    def lens(self) -> Lens:
        """The statistic that colours the tokens: the user's choice, or the one that fits the phase."""
        shown = self.session.shown
        if self.preview.shown is not None:
            return self.preview.lens(self.lens_choice).of(self.preview.settings)
        # While TRPO still searches for a step, no token has a gradient: keep the colours of the credit phase.
        phase = "sample" if shown is None else "credit" if shown.phase == "update" and not shown.steps else shown.phase
        settings = self.session.settings_of(shown)
        chosen = self.lens_choice or automatic(phase, settings)
        # Another program's trainer does not look at the tokens again after its update.
        if self.lens_choice is None and phase == "after" and shown is not None:
            facts = facts_of(shown)
            chosen = next((name for name in (chosen, *_INSTEAD) if facts.lens(name) is not None), chosen)
        return LENSES[chosen].of(settings)

    def get_default_screen(self) -> Screen[Any]:
        """The screen of the panels."""
        return MainScreen(id="_default")

    def point(self, completion: int, token: int) -> None:
        """Put the cursor on a token, in every panel; of an answer that is folded away, on the one shown for it."""
        completion = self.folding.shown_for(completion)
        self.tokens.point(completion, token)
        self.rollouts.point(*self.tokens.cursor)
        self.narrator.forget()
        self.inspect()

    def inspect(self) -> None:
        """Show the details of the token under the cursor."""
        self.curves.follow(self.tokens.cursor)
        session, preview = self.session, self.preview
        if preview.shown is None:
            self.inspector.show(session.shown, self.tokens.cursor, session.settings_of(session.shown))
        else:
            self.inspector.show(preview.shown, self.tokens.cursor, preview.settings, preview.result)

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Show the curves of `metrics`, without the focus; the most that fit, the first of them before the others."""
        names = list(dict.fromkeys(map(self.session.run.history.named, metrics)))
        if not names:
            return
        narrow = self.main.has_class("-narrow")
        if narrow and len(names) > 1:
            names = [name for name in names if name != "reward"]  # which is in the header
        if narrow and len(names) > 1 and self.view != "curves":
            self.show_view("curves")
        self.curves.exhibit(names)

    def show_view(self, view: str) -> None:
        """Show the answers, the token or the curves; on a wide screen, smaller or larger curves."""
        self.view = view
        for each in VIEWS:
            self.main.set_class(each == view, f"-view-{each}")

    def spot(self) -> Spot:
        """The update, its progress and the token on the screen; a remark belongs to them."""
        shown, cursor = self.session.shown, self.tokens.cursor
        if shown is None or shown.sampled is None:
            return Spot(cursor=cursor)
        return Spot(shown.number, (shown.sampled.position, len(shown.steps)), cursor)

    def seek(self, typed: str) -> str:
        """Show only the matches of `typed`, or everything if it is empty; returns what is wrong, in one line."""
        problem = self.finder.ask(typed, self.session)
        self.session.changed.add("update")
        return problem

    async def perform(self, name: str, argument: Any = None) -> None:
        """Carry out a verb, as a key or a script would."""
        raise NotImplementedError

    def listen(self) -> None:
        """Start the source and follow its events."""
        raise NotImplementedError

    def tour(self) -> None:
        """Play the lesson up to its next text; if it waits for labels, ask for them."""
        raise NotImplementedError

    async def restart_lesson(self) -> None:
        """Begin the lesson again, with its answers forgotten."""
        raise NotImplementedError

    def share(self) -> tuple[str, str]:
        """The share code of the lesson at this moment, and what it leaves out; or "", and why there is none."""
        raise NotImplementedError

    def open_knobs(self, at: str | None = None) -> None:
        """Open all settings to view and change, with the cursor on the one named `at`."""
        raise NotImplementedError
