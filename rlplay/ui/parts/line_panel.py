"""A scrolling panel drawn line by line: only visible lines, each once until it changes.

Measured on 64 × 64 tokens: 9 ms for a full repaint, where one widget per token takes 1,275 ms.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.content import Content
from textual.filter import ANSIToTruecolor, LineFilter
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.theme import Theme

from rlplay.ui.compat import resize_content
from rlplay.ui.format.shown_text import TICK
from rlplay.ui.parts.panel import Panel
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.parts.splits import Splits
from rlplay.ui.terminal.gate import passed, ungated
from rlplay.ui.theme.inks import Palette, palette

CORNERS = 6
"""Cells of a border's line that text cannot use."""
_NEAR = 4
"""Lines outside the view that count as near it."""
COLOURS = {None: 2, "standard": 16, "windows": 16, "256": 256, "truecolor": 1 << 24}


class LinePanel(Panel, ScrollView, can_focus=True):
    """Base of the panels made of lines. Subclasses define the number of lines and the content of each."""

    EMPTY = ""
    """One sentence for an empty panel, with the key that fills it between backticks; `words` replaces it."""
    BEFORE = AFTER = ""
    """Around the words in the border, where the frame goes on into another panel's."""

    TITLE_VERB = ""
    """What a click on the upper or the lower border does; "" for nothing."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._contents: dict[int, list[Segment]] = {}
        """What the lines in sight say, until they change."""
        self._strips: dict[int, Strip] = {}
        """How they look on the panel's background, once drawn."""
        self._captions: tuple[object, ...] = ()
        self.words = self.EMPTY
        self._said: str | None = None
        """The sentence on the screen, None where there are lines."""
        self._ground = Style()
        self.palette: Palette

    def count(self) -> int:
        """The number of lines; 0 shows the sentence `words`."""
        raise NotImplementedError

    def line(self, row: int) -> Iterable[Segment]:
        """The content of line `row`."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Take the theme's colours, now and after each change of theme."""
        self._take_theme()
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)

    def on_unmount(self) -> None:
        """Let go of the signal, which would keep the widget for good."""
        self.app.theme_changed_signal.unsubscribe(self)

    def on_resize(self) -> None:
        """Draw the lines for the new width."""
        self.recolour()

    def _theme_changed(self, _theme: Theme) -> None:
        self._take_theme()
        self.recolour()

    def _take_theme(self) -> None:
        shown = 2 if self.app.no_color else COLOURS[self.app.console.color_system]
        self.palette = palette(self.app.theme_variables, shown)

    def recolour(self) -> None:
        """Redraw all lines; their number stays the same."""
        self._forget()
        self.refresh()

    def rebuild(self) -> None:
        """The lines changed: count them and redraw the visible ones that differ."""
        count = self.count()
        size = Size(self.scrollable_content_region.width, count)
        if size != self.virtual_size:
            resize_content(self, size)
        before, strips, self._contents, self._strips = self._contents, self._strips, {}, {}
        said, self._said = self._said, None if count else self.words
        if not count and said == self.words:
            return
        if not before or not count:
            self.recolour()
            return
        top, changed = self.scroll_offset.y, list[int]()
        for row in range(top, top + self.scrollable_content_region.height):
            segments = self._contents[row] = list(self.line(row)) if row < count else []
            if before.get(row) != segments:
                changed.append(row)
            elif row in strips:
                self._strips[row] = strips[row]
        self._refresh_rows(changed)

    def caption(self, title: Content, subtitle: Content) -> None:
        """Set the text in the border; repaints only if it changed."""
        if self._captions == (title, title.spans, subtitle, subtitle.spans):
            return
        self._captions = (title, title.spans, subtitle, subtitle.spans)
        self.border_title, self.border_subtitle = (
            Content.assemble(self.BEFORE, words, self.AFTER) if words else Content() for words in (title, subtitle)
        )

    def redraw(self, *rows: int) -> None:
        """Redraw these lines."""
        for row in rows:
            self._contents.pop(row, None)
            self._strips.pop(row, None)
        self._refresh_rows(sorted({*rows}))

    def _refresh_rows(self, rows: Sequence[int]) -> None:
        """Let Textual draw these lines, in ascending order, again: neighbours as one region, which is quicker."""
        top, width, regions = self.scroll_offset.y, max(self.virtual_size.width, self.size.width), list[Region]()
        for row in rows:
            if regions and regions[-1].bottom == row - top:
                regions[-1] = regions[-1].grow((0, 0, 1, 0))
            else:
                regions.append(Region(0, row - top, width, 1))
        if regions:
            self.refresh(*regions)

    def _forget(self) -> None:
        self._contents.clear()
        self._strips.clear()
        self._ground = Style()

    def reveal(self, first: int, last: int | None = None) -> None:
        """Scroll to the lines from `first` to `last`, or to `first` if not all of them fit.

        Nearby lines need little scrolling; distant lines appear with some lines around them.
        """
        height, top = self.scrollable_content_region.height, self.scroll_offset.y
        last = first if last is None else last
        if last >= top + height + _NEAR or first < top - _NEAR:
            top = max(min(first - height // 3, self.count() - height), 0)
        if last >= top + height:
            top = last - height + 1
        top = min(top, first)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, immediate=True)

    @property
    def tip(self) -> str:
        """What the upper and the lower border say to a mouse that rests on them; "" for nothing."""
        return ""

    def _on_border(self, event: events.MouseEvent) -> bool:
        return event.y in (0, self.outer_size.height - 1)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Explain the panel where the mouse is on its border."""
        tip = self.tip if self._on_border(event) else ""
        if tip != str(self.tooltip or ""):
            self.tooltip = Content(tip) if tip else None

    @on(events.Click)
    def _title_clicked(self, event: events.Click) -> None:
        dragged = any(isinstance(around, Splits) and around.moved for around in self.ancestors)
        if self.TITLE_VERB and self._on_border(event) and not dragged:
            self.post_message(Perform(self.TITLE_VERB))

    def notify_style_update(self) -> None:
        """Focus and size change the background of every line."""
        super().notify_style_update()
        self._forget()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """The app's filters without two: the palette needs no colour translation, and finished lines pass the gate.

        Each of the two would cost a tenth of the drawing time.
        """
        return [each for each in ungated(super().get_line_filters()) if not isinstance(each, ANSIToTruecolor)]

    def render_lines(self, crop: Region) -> list[Strip]:
        """The visible lines with the border, without any control sequences for the terminal."""
        return [passed(strip) for strip in super().render_lines(crop)]

    def render_line(self, y: int) -> Strip:
        """The line `y` below the top of the panel, for Textual."""
        width = self.scrollable_content_region.width
        if not self._ground:
            self._ground = self.rich_style
        if self.count() == 0:
            return self._empty(y, width)
        row = y + self.scroll_offset.y
        strip = self._strips.get(row)
        if strip is None:
            if (segments := self._contents.get(row)) is None:
                segments = self._contents[row] = list(self.line(row)) if row < self.count() else []
            strip = self._strips[row] = self._strip(segments, width)
        return strip

    def _strip(self, segments: list[Segment], width: int) -> Strip:
        """The segments on the panel's background, with neighbours of the same style joined: every piece costs time."""
        joined: list[Segment] = []
        texts: list[str] = []
        last = ground = self._ground
        left = width
        for segment in segments:
            style = ground if segment.style is None else ground + segment.style
            if style is not last and texts:
                joined.append(Segment("".join(texts), last))
                texts = []
            last = style
            texts.append(segment.text)
            left -= segment.cell_length
        joined.append(Segment("".join(texts), last))
        if left < 0:
            return Strip(joined).crop(0, width)
        return Strip([*joined, Segment(" " * left, ground)] if left else joined, width)

    def _empty(self, y: int, width: int) -> Strip:
        # Backticks count in wrapping, so a line with a key may end a little early.
        words = textwrap.wrap(self.words, max(width - 8, 12))
        top = (self.scrollable_content_region.height - len(words)) // 2
        if not -1 <= y - top <= len(words) or not words:
            return Strip([Segment(" " * width)]).apply_style(self._ground)
        inner = max(len(line.replace("`", "")) for line in words) + 4
        middle = self._centred(words[y - top] if 0 <= y - top < len(words) else "", inner)
        left = max((width - inner) // 2, 0)
        return Strip([Segment(" " * left), *middle]).adjust_cell_length(width).apply_style(self._ground)

    def _centred(self, text: str, width: int) -> list[Segment]:
        """One centred line of the sentence, with keys in bold."""
        parts = text.split("`")
        around = width - sum(map(len, parts))
        styles = self.palette.muted, self.palette.strong
        words = [Segment(part.replace(TICK, "`"), styles[at % 2]) for at, part in enumerate(parts)]
        return [Segment(" " * (around // 2)), *words, Segment(" " * (around - around // 2))]
