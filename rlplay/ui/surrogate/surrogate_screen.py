"""The surrogate as a picture: drag its walls, and see how many tokens would have no gradient."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from rlplay.trace.kinds import SomeSettings
from rlplay.trace.numbers import compact
from rlplay.trace.pulls import Pulls, pulls
from rlplay.ui.format.keyed import keyed
from rlplay.ui.parts.over_another import Dialogue
from rlplay.ui.session.session import Session
from rlplay.ui.surrogate.picture import Frame, drawn
from rlplay.ui.surrogate.walls import Walls, beyond, has_picture

NO_PICTURE = "{} depends on more than the ratio and the advantage, so no curve over the ratio alone shows it."
NO_WALL = "This surrogate has no wall to drag: every token keeps a gradient."
ONE_STEP = (
    "With one optimizer step for each batch ε changes nothing, because every ratio is 1 in it: the bars stand at the "
    "ratios after it. Set num_iterations to 2 to see the walls at work."
)
NO_TOKENS = "After an update its tokens stand below the curves. Press `esc`, then `u`."
_STEP = 0.01


class SurrogatePlot(Widget):
    """The picture. A wall under the mouse follows it."""

    DEFAULT_CSS = "SurrogatePlot { height: 1fr; margin: 1 1 0 1; }"

    class Dragged(Message):
        """A wall was dragged: the upper one or the lower one, to this distance from 1."""

        def __init__(self, upper: bool, to: float) -> None:
            super().__init__()
            self.upper, self.to = upper, to

    def __init__(self, draw: SurrogateScreen) -> None:
        super().__init__()
        self._dialogue = draw
        self._dragging = False

    @property
    def frame(self) -> Frame:
        """Where things are."""
        dialogue = self._dialogue
        return Frame.of(self.content_size.width, self.content_size.height, dialogue.begun, dialogue.found)

    def render(self) -> Content:
        dialogue = self._dialogue
        return drawn(self.frame, dialogue.settings, dialogue.walls, dialogue.begun, dialogue.found, dialogue.held)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take the wall at this side of 1."""
        self._dragging = True
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Let it follow."""
        if self._dragging:
            self._drag(event)

    def on_mouse_up(self) -> None:
        """Let it go."""
        self._dragging = False
        self.release_mouse()

    def _drag(self, event: events.MouseEvent) -> None:
        ratio = self.frame.ratio_at(int(event.x))
        self.post_message(self.Dragged(ratio >= 1, abs(ratio - 1)))


class SurrogateScreen(Dialogue[SomeSettings | None]):
    """Its result is the changed settings, or None."""

    DEFAULT_CSS = """
    SurrogateScreen > Vertical { width: 140; height: 90%; }
    SurrogateScreen Static { height: auto; margin: 0 1; }
    SurrogateScreen #said { min-height: 2; margin: 1 1 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "walls nearer"),
        Binding("right", "move(1)", "walls farther"),
        Binding("shift+left", "move(-5)", "five times as far", show=False),
        Binding("shift+right", "move(5)", "five times as far", show=False),
        Binding("tab", "hold", "both walls, the upper, the lower", priority=True),
        Binding("z", "reset", "undo", id="undo"),
        Binding("enter", "apply", "use it"),
        Binding("escape,q,K", "dismiss", "close"),
    ]

    def __init__(self, session: Session) -> None:
        """For the update on the screen, or the settings before there is one."""
        super().__init__()
        self.settings = session.settings_of(session.shown)
        self.found: Pulls | None = pulls(session.shown)
        self.begun = self.walls = Walls.of(self.settings)
        self.held: bool | None = None
        self._steers = session.has_engine
        self._word = session.step_word

    def compose(self) -> ComposeResult:
        with Vertical() as panel:
            panel.border_title = "Surrogate"
            yield Static(self._heads())
            if has_picture(self.settings):
                yield SurrogatePlot(self)
            yield Static(id="said")

    def on_mount(self) -> None:
        keys = "`← →` move · `tab` which wall · drag · `z` undo · " + "`enter` use it · " * self._steers + "`esc` close"
        self.query_one(Vertical).border_subtitle = keyed(keys if self._has_walls else "`esc` close")
        self._show()

    @on(SurrogatePlot.Dragged)
    def _dragged(self, event: SurrogatePlot.Dragged) -> None:
        if self._has_walls:
            self.walls = self.walls.moved(event.upper, event.to, self.held is None and self._one_wall)
            self._show()

    def action_move(self, steps: int) -> None:
        """Move what is held."""
        if not self._has_walls:
            return
        upper = self.held is not False
        at = self.walls.high if upper else self.walls.low
        self.walls = self.walls.moved(upper, at + steps * _STEP, self.held is None)
        self._show()

    def action_hold(self) -> None:
        """Both walls, the upper one, the lower one."""
        self.held = {None: True, True: False, False: None}[self.held]
        self._show()

    def action_reset(self) -> None:
        """The walls of the settings."""
        self.walls = self.begun
        self._show()

    def action_apply(self) -> None:
        """Train with these walls from now on."""
        self.dismiss((self.walls.changes(self.settings) or None) if self._steers else None)

    @property
    def _has_walls(self) -> bool:
        return has_picture(self.settings) and self.settings.surrogate_row.band

    @property
    def _one_wall(self) -> bool:
        return self.settings.epsilon_high is None

    def _heads(self) -> Content:
        if not has_picture(self.settings):
            return Content(NO_PICTURE.format(f"surrogate={self.settings.surrogate}"))
        return Content.assemble(
            "What the update increases, drawn against new ÷ old probability. ",
            ("Left: A>0.", "bold $scale-up"), " ", ("Right: A<0.", "bold $scale-down"), " ",
            ("Grey: no gradient.", "$text-muted"),
        )  # fmt: skip

    def _show(self) -> None:
        for plot in self.query(SurrogatePlot):
            plot.refresh()
        self.query_one("#said", Static).update(keyed(self._said()))

    def _said(self) -> str:
        if not has_picture(self.settings):
            return ""
        if not self._has_walls:
            return NO_WALL
        walls = f"ε {_written(self.begun)}" + ("" if self.walls == self.begun else f" → {_written(self.walls)}")
        if self.found is None or not len(self.found.ratio):
            return f"{walls}. {NO_TOKENS}"
        old, new = (int(beyond(self.settings, each, self.found).sum()) for each in (self.begun, self.walls))
        counts = f"{old:,} of {len(self.found.ratio):,} {self._word}s of the last step are beyond the walls"
        moved = "" if self.walls == self.begun else f"; {new:,} would be then"
        which = {None: "both walls", True: "the upper wall", False: "the lower wall"}[self.held]
        return f"{walls} ({which} held). {counts}{moved}. {ONE_STEP if self.found.step is None else ''}"


def _written(walls: Walls) -> str:
    return compact(walls.low) if walls.low == walls.high else f"{compact(walls.low)} and {compact(walls.high)}"
