"""The keys, from the registry of verbs: as many as fit, each to press or to click."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import RenderResult
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from rlplay.scenario.verbs import VERBS, Verb

KEY_NAMES = {
    "full_stop": ".",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "f12": "F12",
    "f1": "F1",
}
ALWAYS = ("help", "quit")


def key_name(verb: Verb) -> str:
    """The verb's first key as it is written on a keyboard."""
    return KEY_NAMES.get(verb.keys[0], verb.keys[0]) if verb.keys else ""


class Footer(Widget):
    """Keys in the accent, words plain."""

    def __init__(self, *, id: str | None = None, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__(id=id)
        self._verbs = [verb for verb in VERBS.values() if verb.footer and verb.name not in hidden]

    def render(self) -> RenderResult:
        verbs = self.fitting(self.size.width)
        parts: list[Content] = []
        for verb in verbs:
            press = Style.from_meta({"@click": f"app.verb('{verb.name}')"})
            label = Content.assemble((key_name(verb), "bold $footer-key-foreground"), (f" {verb.title}", "$text-muted"))
            parts.append(label.stylize(press))
        return Content.assemble(" ", Content("   ").join(parts))

    def fitting(self, width: int) -> list[Verb]:
        """The verbs that have room; help and quit stay longest."""
        verbs = list(self._verbs)
        while sum(cell_len(key_name(v)) + cell_len(v.title) + 4 for v in verbs) > width:
            spare = [verb for verb in verbs if verb.name not in ALWAYS]
            if not spare:
                break
            verbs.remove(spare[-1])
        return verbs
