"""The keys of the registered verbs: as many as fit, to press or to click."""

from __future__ import annotations

from collections.abc import Container

from rich.cells import cell_len
from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.widget import Widget

from rlplay.link.messages import Abilities
from rlplay.ui.messages import Perform
from rlplay.verbs import VERBS, Verb

KEY_NAMES = {
    "full_stop": ".",
    "question_mark": "?",
    "slash": "/",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "f12": "F12",
    "f1": "F1",
}
NARROW = 110
FIRST_TO_GO = ("find", "timeline", "step", "phase", "token", "panel", "lens", "knobs", "undo", "tour", "update")
"""The order in which verbs leave a short line. Below `NARROW` columns "panel" stays: it switches between panels."""


def key_name(verb: Verb) -> str:
    """The verb's first key, as written on a keyboard."""
    return KEY_NAMES.get(verb.keys[0], verb.keys[0]) if verb.keys else ""


class Footer(Widget):
    """A line with keys in the accent colour and their titles."""

    def __init__(self, *, without: tuple[str, ...] = (), id: str | None = None) -> None:
        """`without` are verbs to leave out; the trainer of another program may not know others."""
        super().__init__(id=id)
        self._cannot: Container[str] = ()
        self._verbs = [verb for verb in VERBS.values() if verb.footer and verb.name not in without]

    def render(self) -> RenderResult:
        parts = [
            Content.assemble((key_name(verb), self._ink(verb)), (f" {verb.title}", "$text-muted"))
            for verb in self.fitting(self.size.width)
        ]
        return Content.assemble(" ", Content(" " * _gap(self.size.width)).join(parts))

    def allow(self, abilities: Abilities | None) -> None:
        """Dim the keys of the verbs that the trainer of another program does not know."""
        cannot: Container[str] = () if abilities is None else abilities.cannot
        if cannot != self._cannot:
            self._cannot = cannot
            self.refresh()

    def _ink(self, verb: Verb) -> str:
        return "$text-muted" if verb.name in self._cannot else "bold $accent"

    def on_click(self, event: events.Click) -> None:
        """Carry out the verb under the mouse."""
        x = 1
        for verb in self.fitting(self.size.width):
            end = x + _width(verb)
            if x <= event.x < end:
                self.post_message(Perform(verb.name))
                return
            x = end + _gap(self.size.width)

    def fitting(self, width: int) -> list[Verb]:
        """The verbs that fit; run, help and quit always stay."""
        verbs = list(self._verbs)
        for name in FIRST_TO_GO:
            if sum(_width(verb) + _gap(width) for verb in verbs) <= width:
                break
            if VERBS[name] in verbs and (name != "panel" or width >= NARROW):
                verbs.remove(VERBS[name])
        return verbs


def _gap(width: int) -> int:
    return 3 if width >= NARROW else 2


def _width(verb: Verb) -> int:
    return cell_len(f"{key_name(verb)} {verb.title}")
