"""The playground's screen and the dialogues above it."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.events import Mount
from textual.message import Message
from textual.screen import ModalScreen, Screen, ScreenResultType

from rlplay.ui.compat import OverAnother, Underneath


class MainScreen(Underneath, Screen[None]):
    """The playground."""

    class Back(Message):
        """No dialogue lies above it, at first or any more."""

    def on_screen_resume(self) -> None:
        """Tell the app that no dialogue lies above it."""
        self.post_message(self.Back())


class Dialogue(OverAnother, ModalScreen[ScreenResultType]):
    """A dialogue of rlplay: a frame in the middle, with the screen below it dimmed."""

    DEFAULT_CSS = """
    Dialogue { align: center middle; background: $background 70%; }
    Dialogue > Vertical, Dialogue > VerticalScroll {
        max-width: 100%; padding: 0 1; background: $background; scrollbar-size-vertical: 1;
        border: round $accent; border-title-color: $foreground; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    """

    CAPTIONED = True
    """Whether a lesson that waits for it shows its caption in it."""

    class Opened(Message):
        """The dialogue has its widgets; the app may add a lesson's caption."""

        def __init__(self, dialogue: Dialogue[Any]) -> None:
            super().__init__()
            self.dialogue = dialogue

    class Explain(Message):
        """The user wants to know what the dialogue shows, and its keys."""

        def __init__(self, dialogue: Screen[Any]) -> None:
            super().__init__()
            self.dialogue = dialogue

    @on(Mount)
    def _opened(self) -> None:
        """The widgets are there, and the dialogue's own `on_mount` has run: Textual calls those of subclasses first."""
        self.post_message(self.Opened(self))

    def action_help(self) -> None:
        """Explain the dialogue and list its keys."""
        self.post_message(self.Explain(self))
