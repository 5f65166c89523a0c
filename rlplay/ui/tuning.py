"""The settings while they are being changed: the knobs beside the tokens, and the preview of the changes."""

from __future__ import annotations

from typing import Any

from textual import on

from rlplay.scenario.reproduction import scenario_of
from rlplay.ui.messages import CursorStepped, Drafted, PreviewToggled
from rlplay.ui.playground import Playground
from rlplay.ui.refresh import Refresher
from rlplay.ui.widgets.curve_panel import CurvePanel
from rlplay.ui.widgets.splits import Splits

BY_CURVE = {
    "kl": "beta", "entropy": "entropy_coef", "completions/mean_length": "max_completion_length",
    "clip_ratio/region_mean": "epsilon", "grad_norm": "max_grad_norm", "learning_rate": "learning_rate",
}  # fmt: skip
"""The setting that a curve is about, by the curve's first metric that is here."""


class Tuning(Playground):
    """The part of the app that opens the knobs and previews their changes."""

    refresher: Refresher
    _last: str | None = None  # the setting under the cursor when the knobs were closed

    def open_knobs(self, at: str | None = None) -> None:
        """Open all settings to view and change.

        The cursor is on the one named `at`, else on the one that the focused curve is about, else where it was last.
        """
        started = self.session.run.started
        if started is None:
            self.notify("The engine is still starting; its settings are not yet known.")
            return
        from rlplay.ui.screens.knobs import KnobsScreen

        self.knobs = KnobsScreen(
            self.session.settings,
            scenario_of(started),
            self.session.source.live,
            at or self._at_hand(),
            self.session.abilities,
            bool(started.source),
        )
        # Answers and the token stay visible to preview a change.
        self.main.query_one(Splits).reset()
        self.main.add_class("-knobs")
        self.push_screen(self.knobs, self._knobs_closed)
        self.call_after_refresh(self.show_preview)

    def _at_hand(self) -> str | None:
        focused = self.main.focused
        curves = focused.view.metrics if isinstance(focused, CurvePanel) else ()
        return next((BY_CURVE[name] for name in curves if name in BY_CURVE), self._last)

    @on(Drafted)
    async def _drafted(self, event: Drafted) -> None:
        if self.knobs is not None:  # a branch's settings do not concern this run
            await self.preview.draft(event.changes)
            self.show_preview()

    @on(PreviewToggled)
    def _preview_toggled(self) -> None:
        self.preview.as_trained = not self.preview.as_trained
        self.show_preview()

    @on(CursorStepped)
    def _cursor_stepped(self, event: CursorStepped) -> None:
        if event.along:
            self.tokens.action_along(event.along)
        else:
            self.tokens.action_across(event.across)

    def show_preview(self) -> None:
        """Show what the drafted settings would do to the update on the screen."""
        self.session.changed.add("update")
        self.refresher.panels()
        if self.knobs is not None:
            self.knobs.tell(self.preview.words, self.preview.result is not None)

    async def _knobs_closed(self, changes: dict[str, Any] | None) -> None:
        self._last = None if self.knobs is None else self.knobs.name_under_cursor
        self.knobs = None
        self.main.remove_class("-knobs")
        self.preview.clear()
        self.call_after_refresh(self.show_preview)  # not before there is room again
        if changes:
            await self.perform("set", changes)
