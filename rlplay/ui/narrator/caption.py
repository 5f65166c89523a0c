"""The lesson's caption inside a dialogue that the lesson asks for, which may hide the narrator."""

from __future__ import annotations

from textual.content import Content
from textual.widget import Widget

from rlplay.ui.format.keyed import QUIET, keyed
from rlplay.ui.narrator.narrator import Narrator


class Caption(Widget):
    """Repeats what the narrator says. Letters may be typed in a dialogue, so it names the key that leads back."""

    DEFAULT_CSS = """
    Caption { dock: bottom; height: auto; max-height: 10; padding: 0 1; background: $background;
        border-left: outer $foreground; }
    """

    def __init__(self, narrator: Narrator) -> None:
        super().__init__()
        self._narrator = narrator

    def on_mount(self) -> None:
        """Follow the narrator, and be as high as it and the keys below it: those are of the other screen."""
        self.styles.min_height = self._narrator.outer_size.height + 1
        self.screen.add_class("-captioned")  # a low screen then has less room for its panels
        self._narrator.said.subscribe(self, self._said)

    def _said(self, _words: Content) -> None:
        self.refresh(layout=True)

    def render(self) -> Content:
        return Content.assemble(self._narrator.words, "  ", keyed("`esc` back to the lesson", QUIET))
