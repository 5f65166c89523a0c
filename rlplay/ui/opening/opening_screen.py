"""The first screen of `rlplay`: the recorded story at once, the live first answer once the engine has it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget

from rlplay.tasks.numerals import last_number
from rlplay.ui.opening.picture import Line, Now, Part, picture
from rlplay.ui.opening.story import Story
from rlplay.ui.opening.ways import WAYS
from rlplay.ui.session.session import Session
from rlplay.verbs import VERBS

_LOOKS = 0.25
"""Seconds between two looks at the engine."""
_TOKEN = 0.09
"""Seconds that a token of the live answer takes to read."""
_ROLES = {
    "title": "bold $foreground",
    "text": "$foreground",
    "strong": "bold $foreground",
    "muted": "$text-muted",
    "faint": "$border",
    "recorded": "italic $text-muted",
    "live": "bold $success",
    "good": "$success",
    "bad": "$error",
    "curve": "$curve-a",
    "key": "bold $foreground",
    "way": "$foreground on $panel",
    "way key": "bold $foreground on $panel",
    "chosen": "bold $background on $accent",
}


class OpeningScreen(Screen[str | None]):
    """Its result is the verb of the way that was taken, one of `WAYS`, or None."""

    DEFAULT_CSS = """
    OpeningScreen { background: $background; }
    OpeningPicture { width: 1fr; height: 1fr; text-wrap: nowrap; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(",".join(VERBS[verb].keys), f"take('{verb}')", VERBS[verb].title, id=verb) for verb in WAYS),
        Binding("enter", "take('')", "go on"),
        Binding("left,shift+tab", "move(-1)", "way before"),
        Binding("right,tab", "move(1)", "next way"),
        Binding("escape", "close", "close"),
        Binding(",".join(VERBS["quit"].keys), "app.verb('quit')", VERBS["quit"].title, id="quit"),
    ]

    def __init__(self, session: Session, story: Story, now: Now) -> None:
        """Begin with `now`, whose ways are those of `WAYS`."""
        super().__init__()
        self._session = session
        self._picture = OpeningPicture(story, now)
        self._began = time.monotonic()
        self._written = 0  # tokens of the live answer that are on the screen
        self._queued = ""
        self._left = False

    def compose(self) -> ComposeResult:
        yield self._picture

    def on_mount(self) -> None:
        self._look()
        self.set_interval(_LOOKS, self._look)
        self.set_interval(_TOKEN, self._write)

    def on_key(self, event: events.Key) -> None:
        """A key that takes no way closes the opening, and then does what it does on the main screen."""
        bound = self.active_bindings.get(event.key)
        if bound is None or bound.node is not self:
            event.stop()
            event.prevent_default()
            self._leave(None)
            self.app.simulate_key(event.key)

    def on_click(self, event: events.Click) -> None:
        """Take the way under the mouse."""
        way = self._picture.way_at(event.x, event.y)
        if way is not None:
            self.action_take(WAYS[way])

    def action_move(self, step: int) -> None:
        """Let enter take the way beside."""
        if not self._queued:
            self._picture.show(chosen=(self._picture.now.chosen + step) % len(WAYS))

    def action_take(self, verb: str) -> None:
        """Take a way, "" for the chosen one, at once or as soon as the engine is ready. Lessons need no engine."""
        self._queued = verb or WAYS[self._picture.now.chosen]
        self._picture.show(chosen=WAYS.index(self._queued), waits=True)
        self._look()

    def action_close(self) -> None:
        """Leave for the main screen."""
        self._leave(None)

    def _leave(self, verb: str | None) -> None:
        """End with `verb`, once, unless another screen lies above."""
        if self.is_current and not self._left:
            self._left = True
            self.dismiss(verb)

    def _look(self) -> None:
        session, queued = self._session, self._queued
        if session.failed is not None:
            self._leave(None)
        elif queued and (queued == "lessons" or session.status is not None):
            self._leave(queued)
        elif session.status is None and session.loading is not None:
            loading, seconds = session.loading, time.monotonic() - self._began
            self._picture.show(engine=f"{loading.what} · {seconds:.0f} s", fraction=loading.fraction)
        elif not self._picture.now.ready:
            started = session.run.started
            runs_on = "" if started is None else f": {started.model} model on {started.device}"
            self._picture.show(engine=f"engine ready{runs_on}", ready=True)

    def _write(self) -> None:
        """Write the next token of the live first answer, once the whole batch is sampled."""
        sampled = self._session.run.newest.sampled if self._session.run.newest is not None else None
        if sampled is None or not sampled.done or self._written >= sampled.offsets[1]:
            return
        self._written += 1
        whole = self._written == sampled.offsets[1]
        ended = whole and not sampled.truncated[0]
        text = "".join(sampled.texts[: self._written - ended])  # without the token that ends it
        right = last_number(text) == sampled.columns[0].get("answer") if whole else None
        self._picture.show(live=text, right=right)


class OpeningPicture(Widget):
    """The picture, drawn again whenever something changes."""

    def __init__(self, story: Story, now: Now) -> None:
        super().__init__()
        self._story, self.now = story, now
        self._lines: list[Line] = []

    def show(self, **changes: object) -> None:
        """Show these fields of `Now`."""
        now = replace(self.now, **changes)  # type: ignore[arg-type]
        if now != self.now:
            self.now = now
            self.refresh()

    def way_at(self, x: int, y: int) -> int | None:
        """The number of the way at these cells; None for none."""
        for part in self._lines[y] if y < len(self._lines) else ():
            x -= len(part.text)
            if x < 0:
                return part.way
        return None

    def render(self) -> Content:
        self._lines = picture(self._story, self.now, self.size.width, self.size.height)
        return Content("\n").join(Content.assemble(*map(_styled, line)) for line in self._lines)


def _styled(part: Part) -> tuple[str, str]:
    return part.text, _ROLES["way key" if part.role == "key" and part.way is not None else part.role]
