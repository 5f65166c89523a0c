"""What the screen uses of Textual and Rich beyond their documentation: Textual 8.2.5 and newer, below 9; Rich 14.2 on.

Any release may drop such a name. Nothing here needs one on import, and what is possible without is done in the public,
slower way: each part says what is lost. `tests/ui/test_compat.py` says which names the installed releases lack.

- `Underneath`, `OverAnother`: a screen above another one, of which only the lines that change are drawn again, and only
  by the widgets that have a part in them.
- `ShownInput`: an input that shows its value in another form.
- `ListedPalette`: a palette that lists its commands at once, and may be closed while it searches.
- `resize_content`: lines that come and go without a new layout of the screen.
- `lend_caches`: lines that make a cache when they first need it.
- `end_timers`: notifications that end while they are made.
- `lines_of`, `notifications_of`: what is on the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from operator import is_
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.cache import FIFOCache
from textual.color import Color
from textual.command import Command, CommandList, CommandPalette
from textual.events import ScreenResume
from textual.filter import LineFilter
from textual.geometry import Region, Size
from textual.message_pump import MessagePump
from textual.notifications import Notification
from textual.reactive import Reactive
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, LoadingIndicator

if TYPE_CHECKING:
    from textual._compositor import Compositor as _AnyCompositor

    _AnyScreen = Screen[Any]
else:
    _AnyCompositor = _AnyScreen = object

_OF_SCREEN = (
    "_compositor", "_dirty_regions", "_dirty_widgets", "_set_dirty", "_update_timer", "_on_timer_update",
    "_layout_required", "_repaint_regions", "_repaint_required",
)  # fmt: skip
_OF_COMPOSITOR = "_dirty_regions", "_render_chops"
_TO_COMPOSE = "render_partial_update", "_get_renders", "visible_widgets"


def _keeps_lines(screen: Screen[Any]) -> bool:
    """Whether Textual has all names by which lines are kept; without one it draws all screens for every frame."""
    if not all(hasattr(screen, name) for name in _OF_SCREEN) or not hasattr(screen.app, "_background_screens"):
        return False
    return all(hasattr(screen._compositor, name) for name in _OF_COMPOSITOR)


class Near(_AnyCompositor):
    """For a compositor that asks only the widgets where something has changed for lines, and only for the changed ones.

    Textual asks all widgets for all of their lines, for every frame: a third of the time that a frame takes.
    """

    _changing: list[Region] | None = None

    def render_partial_update(self) -> Any:
        """The regions that have changed, as Textual draws them."""
        self._changing = list(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changing = None

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if self._changing is None:
            yield from super()._get_renders(crop)
            return
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            changing = [each for each in self._changing if each.overlaps(shown)]
            if not changing:
                continue
            top = max(min(each.y for each in changing), shown.y)
            bottom = min(max(each.bottom for each in changing), shown.bottom)
            part = Region(shown.x, top, shown.width, bottom - top)
            yield part, part, widget.render_lines(part.translate((-region.x, -region.y)))


@cache
def _near(compositor: Any) -> Any:
    return type("NearCompositor", (Near, compositor), {})


class Underneath(_AnyScreen):
    """For a screen that others may lie above."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As Textual's, which draws the whole screen again when the focus moves."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        if hasattr(self, "_compositor") and all(hasattr(self._compositor, name) for name in _TO_COMPOSE):
            kind: Any = type(self._compositor)
            self._compositor = _near(kind)()

    def _compositor_refresh(self) -> None:
        """Draw the screen, or let those above draw the regions that have changed.

        Textual also calls these regions of the screen itself changed, so that they change again with the next frame,
        and with every frame from then on.
        """
        stack = self.app.screen_stack
        if self is stack[-1] or not _keeps_lines(self) or self not in self.app._background_screens:
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
        if size != self.outer_size:
            super()._screen_resized(size)


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


class OverAnother(Underneath):
    """For a screen with a translucent background, above one that stays in sight, tinted.

    Textual composes and tints the whole screen below for every frame of either: 12 to 20 ms of a core at 160×50, and
    the screen below is drawn up to 45 times a second while the engine runs.
    """

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

    def on_screen_resume(self, event: ScreenResume) -> None:
        """While the screen opens, its widgets have just been styled; Textual would style them once more."""
        event.refresh_styles = event.refresh_styles and self._has_time

    def _on_timer_update(self) -> None:
        if not self._has_time and _keeps_lines(self):
            self._draw_once()
        self._has_time = True
        super()._on_timer_update()

    def _draw_once(self) -> None:
        """Let the layout that is due draw the screen: Textual would then send all of it to the terminal again."""
        if self._layout_required and self.size.region in self._compositor._dirty_regions:
            self._repaint_required = False
            self._repaint_regions.clear()

    def _compositor_refresh(self) -> None:
        """Draw nothing before the timer says so: Textual would draw three layouts of a screen that opens."""
        if self._has_time or not _keeps_lines(self):
            super()._compositor_refresh()
        else:
            self._update_timer.resume()
            self._repaint_required = True

    def on_unmount(self) -> None:
        """Let go of the lines of this screen's widgets.

        Textual looks up the colours around a border in one table, by the widget's lines among others, so that it keeps
        those of 1024 closed widgets: 43 MB and three times the objects for the garbage collector after 120 dialogues.
        """
        with suppress(ImportError, AttributeError):
            from textual._styles_cache import StylesCache

            StylesCache.get_inner_outer.cache_clear()

    def _screen_below(self) -> Screen[Any] | None:
        stack = self.app.screen_stack
        at = stack.index(self) if self in stack else 0
        return stack[at - 1] if at and self.styles.background.a < 1 and _keeps_lines(self) else None

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


@lru_cache(4096)
def _shade(style: Style, tint: Color) -> Style | None:
    """A style of the screen below as Textual tints it."""
    (segment,) = BackgroundScreen.process_segments([Segment(" ", style)], tint)
    return segment.style


class ShownInput(Input):
    """Textual's `Input` that shows `shown()`, one character for each of its value. Textual would show the value."""

    def shown(self) -> str:
        """The value as it is shown."""
        return self.value

    @property
    def _value(self) -> Text:
        return Text(self.shown(), no_wrap=True, overflow="ignore", end="")

    def _position_to_cell(self, position: int) -> int:
        return cell_len(self.shown()[:position])

    def _cell_offset_to_index(self, offset: int) -> int:
        cell, end = offset + self.scroll_offset.x, 0
        for index, character in enumerate(self.shown()):
            end += cell_len(character)
            if end > cell:
                return index
        return len(self.value)


class ListedPalette(CommandPalette):
    """Textual's palette, with all commands in its first frame. It would search for them first: 18 ms more of a core.

    A search that ends after the palette has been closed finds its list gone, which would be an error.
    """

    def listed(self) -> list[Command]:
        """The commands that are listed before anything is typed."""
        return []

    def _gather_commands(self, search_value: str) -> Any:
        if search_value or not hasattr(self, "_refresh_command_list"):
            return super()._gather_commands(search_value)
        self._refresh_command_list(self.query_one(CommandList), self.listed(), clear_current=True)
        return None

    def _watch__list_visible(self) -> None:
        if self.query(LoadingIndicator):
            super()._watch__list_visible()

    async def _watch__show_busy(self) -> None:
        if self.query(LoadingIndicator):
            await super()._watch__show_busy()


def resize_content(widget: ScrollView, size: Size) -> None:
    """Let a widget have content of another size. Assigning `virtual_size` lays out the screen again, although nothing
    moves where the scrollbar is fixed: 50 ms of each second while the engine runs."""
    if hasattr(widget, "_scroll_update"):
        widget.set_reactive(ScrollView.virtual_size, size)
        widget._scroll_update(size)
    else:
        widget.virtual_size = size


_CACHES = {
    "_divide_cache": 4, "_crop_cache": 16, "_style_cache": 16, "_filter_cache": 4, "_line_length_cache": 4,
    "_crop_extend_cache": 4, "_offsets_cache": 4,
}  # fmt: skip
"""The caches of a strip, with the entries that Textual lets each of them have."""
_REST = "_segments", "_cell_length", "_render_cache", "_link_ids", "_cell_count"


def lend_caches() -> None:
    """Let every `Strip` of this process make each of its seven caches when it first needs it; most never need one.

    They are a third of all objects that the garbage collector visits, and most of the garbage. If a strip of this
    release has other fields, nothing changes.
    """
    if {*Strip.__slots__} == {*_CACHES, *_REST}:
        Strip.__init__ = _without_caches  # type: ignore[method-assign]
        Strip.__getattr__ = _cache  # type: ignore[attr-defined]


def _without_caches(self: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    self._segments = list(segments)
    self._cell_length = cell_length
    self._render_cache = self._link_ids = self._cell_count = None


def _cache(self: Strip, name: str) -> FIFOCache[Any, Any]:
    """The cache called `name`, which is not there yet."""
    if name not in _CACHES:
        raise AttributeError(f"a strip has no {name!r}")
    cache: FIFOCache[Any, Any] = FIFOCache(_CACHES[name])
    setattr(self, name, cache)
    return cache


_SOON = 0.1
"""Seconds that a timer has if its time is over before it begins."""
_set_timer = MessagePump.set_timer


def end_timers() -> None:
    """Let every timer of this process end. Textual's loop for one with less than no time does not, and holds the app.

    A notification asks for such a timer if its own time is over between two lines of Textual's.
    """
    MessagePump.set_timer = _set_timer_soon  # type: ignore[method-assign]


def _set_timer_soon(self: MessagePump, delay: float, *given: Any, **more: Any) -> Timer:
    return _set_timer(self, delay if delay > 0 else _SOON, *given, **more)


def lines_of(app: App[Any]) -> list[Strip]:
    """The lines of the screen as they are drawn, with dialogues and notifications. Textual's own screenshots read them
    like this. Raises OSError, one line, if it does no longer."""
    try:
        from textual._context import visible_screen_stack

        visible_screen_stack.set(app._background_screens)
        return app.screen._compositor.render_strips()
    except (ImportError, AttributeError) as error:
        raise OSError(f"this release of Textual does not give its lines ({error})") from error


def notifications_of(app: App[Any]) -> Iterable[Notification]:
    """The notifications that are shown; none if Textual does not say, so that a message may appear twice."""
    return getattr(app, "_notifications", ())
