"""A screen above another one, which stays in sight, tinted; only the lines of it that change are tinted again.

Textual composes and tints the whole screen below for every frame of either: 35 ms of a core at 160×45, and the screen
below is drawn up to 45 times a second while the engine runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import is_
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.events import ScreenResume
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message import Message
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen, ScreenResultType
from textual.strip import Strip

if TYPE_CHECKING:
    _AnyScreen = Screen[Any]
else:
    _AnyScreen = object


class _Line:
    """A line of the screen below: its pieces there, and how it looks from here."""

    def __init__(self, pieces: Iterable[Strip], tint: Color) -> None:
        self._pieces, self._tint = tuple(pieces), tint
        below = Strip.join(self._pieces)
        self.strip = Strip([Segment(t, _shade(style or Style(), tint)) for t, style, _ in below], below.cell_length)

    def still(self, pieces: Sequence[Strip], tint: Color) -> bool:
        """Whether the screen below still has the same pieces there."""
        same = len(pieces) == len(self._pieces) and all(map(is_, pieces, self._pieces))
        return same and tint == self._tint


class Underneath(_AnyScreen):
    """For a screen that others may lie above."""

    def _compositor_refresh(self) -> None:
        """Draw the screen, or let those above draw the regions that have changed.

        Textual also calls these regions of the screen itself changed, so that they change again with the next frame,
        and with every frame from then on.
        """
        stack = self.app.screen_stack
        if self is stack[-1] or self not in self.app._background_screens:
            super()._compositor_refresh()
            return
        regions = set(self._compositor._dirty_regions)
        self._compositor._dirty_regions.clear()
        self._dirty_widgets.clear()
        if regions:
            for above in stack[stack.index(self) + 1 :]:
                above._set_dirty(*regions)
            self.app.screen.refresh(*regions)

    def _screen_resized(self, size: Size) -> None:
        """Lay out another size; Textual also lays out the same one again whenever a dialogue opens."""
        if size != self._size:
            super()._screen_resized(size)


class MainScreen(Underneath, Screen[None]):
    """The playground."""

    class Back(Message):
        """No dialogue lies above it, at first or any more."""

    def on_screen_resume(self) -> None:
        """Tell the app that no dialogue lies above it."""
        self.post_message(self.Back())


class OverAnother(Underneath):
    """For a screen with a translucent background."""

    _seen_below: list[_Line] | None = None
    _has_time = False

    def render_line(self, y: int) -> Strip:
        """A line of the screen below; a plain one if that is out of sight."""
        below = self._screen_below()
        if below is None or y >= below.size.height:
            return super().render_line(y)
        if self._seen_below is None or len(self._seen_below) != below.size.height:
            self._seen_below = [_Line((), Color(0, 0, 0))] * below.size.height
            self._dirty_regions.add(self.size.region)
        if self._dirty_regions:
            self._look_below(below, self._seen_below)
        return self._seen_below[y].strip

    def get_line_filters(self) -> Sequence[LineFilter]:
        """None for the screen below: it is made of lines that have passed them."""
        return super().get_line_filters() if self._screen_below() is None else []

    async def _compose(self) -> None:
        """Begin with the classes for this size: if they came later, Textual would style every widget again."""
        app = self.app
        for cells, classes in zip(app.size, (app.HORIZONTAL_BREAKPOINTS, app.VERTICAL_BREAKPOINTS), strict=True):
            self.add_class(*self._get_breakpoint_classes(cells, classes or []))
        await super()._compose()

    def _on_screen_resume(self, event: ScreenResume) -> None:
        """Keep the styles of widgets that have just been made."""
        event.refresh_styles = event.refresh_styles and self._has_time

    def _on_timer_update(self) -> None:
        self._has_time = True
        super()._on_timer_update()

    def _compositor_refresh(self) -> None:
        """Draw nothing before the timer says so: Textual would draw three layouts of a screen that opens."""
        if self._has_time:
            super()._compositor_refresh()
        else:
            self._update_timer.resume()
            self._repaint_required = True

    def _screen_below(self) -> Screen[Any] | None:
        stack = self.app.screen_stack
        at = stack.index(self) if self in stack else 0
        return stack[at - 1] if at and self.styles.background.a < 1 else None

    def _look_below(self, below: Screen[Any], seen: list[_Line]) -> None:
        """Take the lines of the screen below that have changed."""
        drawn = min(len(seen), below._compositor.size.height)  # less while a new size of the terminal is laid out
        rows = {row for region in self._dirty_regions for row in region.line_range if 0 <= row < drawn}
        self._dirty_regions.clear()
        if drawn < len(seen):
            self._dirty_regions.add(Region(0, drawn, self.size.width, len(seen) - drawn))
        if not rows:
            return
        crop = Region(0, min(rows), self.size.width, max(rows) - min(rows) + 1)
        chops = below._compositor._render_chops(crop, rows.__contains__)
        for row in rows:
            pieces, tint = list(chops[row].values()), self.styles.background
            if not seen[row].still(pieces, tint):
                seen[row] = _Line(pieces, tint)


class Dialogue(OverAnother, ModalScreen[ScreenResultType]):
    """A dialogue of rlplay: a frame in the middle, with the screen below it dimmed."""

    DEFAULT_CSS = """
    Dialogue { align: center middle; background: $background 70%; }
    Dialogue > Vertical, Dialogue > VerticalScroll {
        max-width: 100%; padding: 0 1; background: $background; scrollbar-size-vertical: 1;
        border: round $accent; border-title-color: $accent; border-title-style: bold;
        border-subtitle-color: $text-muted;
    }
    """

    class Opened(Message):
        """The dialogue has its widgets; the app may add a lesson's caption."""

        def __init__(self, dialogue: Screen[Any]) -> None:
            super().__init__()
            self.dialogue = dialogue

    class Explain(Message):
        """The user wants to know what the dialogue shows, and its keys."""

        def __init__(self, dialogue: Screen[Any]) -> None:
            super().__init__()
            self.dialogue = dialogue

    async def _compose(self) -> None:
        await super()._compose()
        self.post_message(self.Opened(self))

    def action_help(self) -> None:
        """Explain the dialogue and list its keys."""
        self.post_message(self.Explain(self))


@lru_cache(4096)
def _shade(style: Style, tint: Color) -> Style | None:
    """A style of the screen below as Textual tints it."""
    (segment,) = BackgroundScreen.process_segments([Segment(" ", style)], tint)
    return segment.style
