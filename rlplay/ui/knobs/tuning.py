"""The settings while they are being changed: the knobs beside the tokens, and the preview of the changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlplay.link.messages import Set, Status
from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.lenses import LENSES
from rlplay.trace.questions import Imagined
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.main.playground import Feature, Playground
from rlplay.verbs import SLIDERS

if TYPE_CHECKING:
    from rlplay.ui.knobs.knobs_screen import KnobsScreen
    from rlplay.ui.sliders.slider_screen import SliderScreen

BY_CURVE = {
    "kl": "beta", "entropy": "entropy_coef", "completions/mean_length": "max_completion_length",
    "clip_ratio/region_mean": "epsilon", "grad_norm": "max_grad_norm", "learning_rate": "learning_rate",
}  # fmt: skip
"""The setting that a curve is about, by the curve's first metric that is here."""


class Tuning(Feature):
    """The open knobs, and what their changes would do to the update on the screen."""

    def __init__(self, playground: Playground) -> None:
        self._playground = playground
        self._preview = playground.preview
        self.knobs: KnobsScreen | SliderScreen | None = None
        self._last: str | None = None  # the setting under the cursor when the knobs were closed
        playground.join({"set": self._set, "knobs": self._knobs, "paste": self._paste, "slider": self._slider}, self)

    async def _set(self, play: Playground, argument: Any) -> None:
        if isinstance(argument, dict):
            await play.send(Set(argument))
        else:
            self.open()

    async def _knobs(self, _play: Playground, argument: Any) -> None:
        self.open(argument)

    async def _paste(self, play: Playground, _argument: Any) -> None:
        """Ask for a share code, and apply its settings."""
        started = play.session.run.started
        if started is None:
            play.app.notify("The engine is still starting; its settings are not yet known.")
            return
        from rlplay.ui.knobs.paste import PasteScreen

        async def pasted(changes: SomeSettings | None) -> None:
            if changes:
                await play.perform("set", changes)

        play.app.push_screen(PasteScreen(play.session.settings, scenario_of(started)), pasted)

    async def _slider(self, play: Playground, argument: Any) -> None:
        """Slide one number; `argument` is one of `SLIDERS`, by default the first."""
        if play.session.run.started is None:
            play.app.notify("The engine is still starting; its settings are not yet known.")
            return
        from rlplay.ui.sliders.quantity import quantity
        from rlplay.ui.sliders.slider_screen import SliderScreen

        session, name = play.session, argument or SLIDERS[0]
        session.probing.open(None if session.shown is None else session.shown.sampled, play.panels.tokens.cursor)
        self.knobs = SliderScreen(
            quantity(name, session.settings), session.has_engine, self._at_cursor, session.probing, session.source.send
        )
        play.app.push_screen(self.knobs, self._closed)

    def _at_cursor(self, lens: str) -> tuple[float, float] | None:
        result, (completion, token) = self._preview.result, self._playground.panels.tokens.cursor
        if result is None or result.before.sampled is None:
            return None
        place = int(result.before.sampled.offsets[completion]) + token
        both = [LENSES[lens].values(each) for each in (result.before, result.after)]
        before, after = (None if each is None else float(each[place]) for each in both)
        return None if before is None or after is None else (before, after)

    def open(self, at: str | None = None) -> None:
        """Open all settings to view and change.

        The cursor is on the one named `at`, else on the one that the focused curve is about, else where it was last.
        """
        session, app, panels = self._playground.session, self._playground.app, self._playground.panels
        started = session.run.started
        if started is None:
            app.notify("The engine is still starting; its settings are not yet known.")
            return
        from rlplay.ui.knobs.knobs_screen import KnobsScreen

        self.knobs = KnobsScreen(
            session.settings,
            scenario_of(started),
            session.source.live,
            at or self._at_hand(),
            session.abilities,
            session.on_record().keys() if started.source else None,
            session.step_word,
        )
        panels.beside_knobs(True)
        app.push_screen(self.knobs, self._closed)
        app.call_after_refresh(self.show)

    def _at_hand(self) -> str | None:
        focused = self._playground.panels.main.focused
        curves = focused.view.metrics if isinstance(focused, CurvePanel) else ()
        return next((BY_CURVE[name] for name in curves if name in BY_CURVE), self._last)

    async def draft(self, changes: SomeSettings) -> None:
        """Preview `changes`, unless they are those of a branch, which do not concern this run."""
        if self.knobs is not None:
            await self._preview.draft(changes)
            self.show()

    def toggle(self) -> None:
        """Show the update as trained, or as it would be."""
        self._preview.as_trained = not self._preview.as_trained
        self.show()

    async def receive(self, event: Status | Imagined) -> None:
        """Take the engine's answer; when the engine rests, ask what has waited for that."""
        if isinstance(event, Imagined):
            await self._preview.receive(event)
        elif self.knobs is not None and not event.running:
            await self._preview.paused()
        else:
            return
        self.show()

    def show(self) -> None:
        """Show what the drafted settings would do to the update on the screen."""
        self._playground.session.touch("update")
        self._playground.paint()
        if self.knobs is not None:
            self.knobs.tell(self._preview.words, self._preview.result is not None)

    async def _closed(self, changes: SomeSettings | None) -> None:
        self._last = None if self.knobs is None else self.knobs.name_under_cursor
        self.knobs = None
        self._playground.panels.beside_knobs(False)
        self._preview.clear()
        self._playground.app.call_after_refresh(self.show)  # not before there is room again
        if changes:
            await self._playground.perform("set", changes)
