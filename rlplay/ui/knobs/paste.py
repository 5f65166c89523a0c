"""A share code, typed or pasted; the screen shows its changes before they are applied."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.setting_values import shown
from rlplay.algorithms.settings import Settings
from rlplay.scenario.schema import Scenario
from rlplay.scenario.share import PREFIX, Shared, shared_in
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import visible
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.parts.text_field import TextField

_SHOWN = 8
"""Changes listed one by one."""


class PasteScreen(Dialogue[dict[str, Any] | None]):
    """Its result is the settings to change, or None."""

    DEFAULT_CSS = """
    PasteScreen > Vertical { width: 76; height: auto; }
    PasteScreen Input { &, &:focus { height: 1; border: none; padding: 0; background: $surface; } }
    PasteScreen Static { height: auto; min-height: 3; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "cancel")]

    def __init__(self, held: Settings, scenario: Scenario) -> None:
        """The settings that are `held` now in a run of `scenario`."""
        super().__init__()
        self._held = held
        self._scenario = scenario

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title, panel.border_subtitle = "Paste a share code", keyed("`enter` apply · `esc` cancel")
            yield TextField(placeholder=f"{PREFIX}…")
            yield Static(Content.styled("It changes settings, not weights.", "$text-muted"))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.query_one(Static).update(self._preview(event.value))

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        try:
            self.dismiss(changes(shared_in(event.value), self._held, self._scenario))
        except ValueError:
            self._typed(Input.Changed(event.input, event.value))

    def _preview(self, word: str) -> Content:
        """The changes that the code would make, or why it cannot be used."""
        try:
            shared = shared_in(word)
            found = changes(shared, self._held, self._scenario)
        except ValueError as error:
            return Content.styled(visible(str(error)), "$error")
        named = [f"{KNOBS[name].title} {shown(getattr(self._held, name))} → {shown(v)}" for name, v in found.items()]
        rest = [f"and {len(named) - _SHOWN} more"] * (len(named) > _SHOWN)
        lines = [visible(line) for line in [*named[:_SHOWN], *rest]] or ["The settings already match the code."]
        if (shared.scenario, shared.seed) != (self._scenario.name, self._scenario.seed):
            lines.append(
                f"From {visible(shared.scenario)}, seed {shared.seed}; to run the whole recipe: rlplay {PREFIX}…"
            )
        if shared.step:
            lines.append(f"It leads to step {shared.step} of a lesson; to go there: rlplay {PREFIX}…")
        return Content("\n").join(map(Content, lines))


def changes(shared: Shared, held: Settings, scenario: Scenario) -> SomeSettings:
    """The changes to make in a run of `scenario` with the settings `held`. Raises ValueError, one line.

    A code for another scenario, or for one with stages, changes only the settings that it names.
    """
    coded = shared.scenario_with()
    if coded.name == scenario.name and not coded.stages:
        wanted = resolve(coded.settings)
    else:
        algorithm = {} if shared.algorithm is None else {"algorithm": shared.algorithm}
        wanted = apply_all(held, algorithm | shared.settings)
    wanted = apply_all(wanted, shared.changed)
    return {name: getattr(wanted, name) for name in KNOBS if getattr(wanted, name) != getattr(held, name)}
