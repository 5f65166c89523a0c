"""The first minute: four cards over the live screen. Each card highlights the panels that it explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from rlplay.paths import note_oriented
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.step_word import worded
from rlplay.ui.parts.over_another import Dialogue

LIT = "-lit"


@dataclass(frozen=True)
class Card:
    """One card: its text (with `narrow` added on a small screen) and the panels that it highlights.

    A `high` card is at the top of a small screen, so that it does not cover the panels that it explains.
    """

    title: str
    text: str
    lights: str
    narrow: str = ""
    high: bool = False


CARDS = (
    Card(
        "What you see",
        "A language model answers prompts and learns from how good its answers are. Answers lists their rewards, "
        "Tokens their text, coloured by one statistic; Token explains the selected one. The curves show the run so "
        "far.",
        "#rollouts, #tokens, #inspector, CurvePanel",
        "On a small screen, `p` shows the other panels.",
    ),
    Card(
        "Run it",
        "`space` runs and pauses. One step at a time: `.` a token, `n` a phase, `s` an optimizer step, `u` a whole "
        "update. `z` undoes an update. You cannot break anything.",
        "PhaseBar, Footer",
    ),
    Card(
        "Look closer",
        "The arrows take the cursor from token to token; Token shows what the model could have written instead, and "
        "the formula with this token's numbers. `c` colours by another statistic, `/` finds, `[` looks at an older "
        "update, `v` returns.",
        "#tokens, #inspector",
        high=True,
    ),
    Card(
        "Finding help",
        "`?` explains the current panel, `d` any term, `k` every setting. `ctrl+p` finds everything by name, even "
        "these cards. The line above the keys says what just happened. `t` plays the lesson. The mouse works: click, "
        "turn the wheel, drag the border before Token or above the curves, rest on a title.",
        "Narrator, Footer",
        high=True,
    ),
)


class OrientationScreen(Dialogue[None]):
    """Enter, → or a click shows the next card. The keys that the cards speak of work: they close the cards and act."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    DEFAULT_CSS = """
    OrientationScreen { align: center bottom; background: transparent; }
    OrientationScreen.-high { align: center top; }
    OrientationScreen > Vertical { width: 74; height: auto; padding: 1 2; margin: 3 1 5 1; background: $panel; }
    OrientationScreen.-narrow > Vertical { padding: 0 1; }
    OrientationScreen Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right", "go(1)", "next card"),
        Binding("left", "go(-1)", "card before"),
        Binding("escape,q", "close", "close"),
    ]

    def __init__(self, main: Screen[object], step_word: str) -> None:
        """`main` is the screen that the cards explain; `step_word` names what its policy samples."""
        super().__init__()
        self._main, self._word = main, step_word
        self._at = -1

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static()

    def on_mount(self) -> None:
        self._main.add_class("-oriented")
        self.action_go(1)

    def on_unmount(self) -> None:
        self._main.remove_class("-oriented")
        self._light("")

    def on_key(self, event: events.Key) -> None:
        """A key that no card takes ends the cards, and then does on the main screen what it always does."""
        if event.key not in self.active_bindings:
            event.stop()
            event.prevent_default()
            self.action_close()
            self.app.simulate_key(event.key)

    def on_click(self) -> None:
        """A click shows the next card."""
        self.action_go(1)

    def action_go(self, step: int) -> None:
        """Show the next card, or the one before; after the last, close."""
        self._at = max(self._at + step, 0)
        if self._at == len(CARDS):
            self.action_close()
            return
        card, narrow = CARDS[self._at], self._main.has_class("-narrow")
        self.set_class(card.high and narrow, "-high")
        panel = self.query_one(Vertical)
        panel.border_title = Content(card.title)
        last = self._at + 1 == len(CARDS)
        panel.border_subtitle = keyed(
            f"{self._at + 1} of {len(CARDS)} · `enter` {'start' if last else 'next'} · `esc` close · other keys work"
        )
        more = f" {card.narrow}" if narrow and card.narrow else ""
        self.query_one(Static).update(keyed(worded(card.text, self._word) + more))
        self._light(card.lights)

    def action_close(self) -> None:
        """Close the cards; they do not come again by themselves."""
        note_oriented()
        self.dismiss()

    def _light(self, parts: str) -> None:
        for part in self._main.query(f".{LIT}"):
            part.remove_class(LIT)
        if parts:
            self._main.query(parts).add_class(LIT)
