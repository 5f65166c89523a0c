"""One small plot: one or two curves over the updates, or a picture of the last optimizer step, with a cursor."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.content import Content, Span
from textual.message import Message

from rlplay.scenario.scenario_world import step_word
from rlplay.trace.metrics import describe
from rlplay.trace.text import visible
from rlplay.ui.curves.curve_help import HELP
from rlplay.ui.curves.first_views import OVERVIEW
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.legend import LOOKED_AT
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.step_word import worded
from rlplay.ui.held_out.learning_map import LearningMap
from rlplay.ui.parts.line_panel import COLOURS, CORNERS
from rlplay.ui.parts.panel import Panel
from rlplay.ui.parts.panel_messages import Perform, UpdatePicked
from rlplay.ui.plot.curve import FIRST, Margins
from rlplay.ui.plot.curve_view import single
from rlplay.ui.plot.picture import CURSOR, Picture, Size, marked
from rlplay.ui.plot.plot_data import PlotData, first_update
from rlplay.ui.plot.smoothing import STRENGTHS
from rlplay.ui.plot.view import VALUE, View
from rlplay.ui.position.by_position import ByPosition
from rlplay.ui.position.position_hands import PositionHands
from rlplay.ui.pull.box_drag import BoxDrag
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.ratio_histogram import Ratios
from rlplay.ui.world.map_hands import MapHands
from rlplay.ui.world.shades import of_256, unshaded
from rlplay.ui.world.world_map import WorldMap


class CurvePanel(Panel, BoxDrag, MapHands, PositionHands, can_focus=True):
    """One plot: one or two curves over the updates, or the ratios of the last optimizer step."""

    HELP = HELP
    help_terms = ("KL divergence", "KL to reference", "KL to old policy", "KL estimators")
    """Of the glossary; the help ends with them."""
    DEFAULT_CSS = """
    CurvePanel {
        width: 1fr; height: 1fr; padding: 0 1; border: round $border;
        border-title-color: $text-muted; border-subtitle-color: $text-muted; border-subtitle-align: left;
        &.-lit { border: round $foreground; border-title-color: $foreground; }
        &:focus { border: round $accent; }
        &.-words { content-align: center middle; text-align: center; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "cursor back", show=False, id="curve.back"),
        Binding("right", "move(1)", "cursor on", show=False, id="curve.on"),
        Binding("up,comma", "cycle(-1)", "previous metric", show=False, id="curve.previous"),
        Binding("down,semicolon", "cycle(1)", "next metric", show=False, id="curve.next"),
        Binding("L", "scale", "log scale", show=False, id="curve.log"),
        Binding("S", "smooth", "smooth", show=False, id="curve.smooth"),
        Binding("enter", "open", "look at this update", show=False, id="curve.open"),
        Binding("escape", "release", "latest values", show=False, id="curve.latest"),
    ]
    MINIATURE = (
        ("Reward ━ 0.273", "what is drawn, and its newest value"),
        ("1      ▃▅▇●", "the curve; ● is the newest update"),
        ("0  ▁▂▃     ○", "○ is a value on held-out prompts"),
        ("   0  ◆  ↶  11", "updates; at ◆ a setting changed, ↶ went back to here"),
    )
    SHORTCUTS = (
        Shortcut(("left", "right"), "cursor"),
        Shortcut(("up", "down"), "metric"),
        Shortcut(("enter",), "look"),
        Shortcut(("L",), "log", False),
        Shortcut(("S",), "smooth", False),
        Shortcut(("B", "T", "P", "E", "Q"), "views", False),
    )

    class Altered(Message):
        """The view or its scale changed."""

    class Moved(Message):
        """The cursor moved to `update`; None: it was removed."""

        def __init__(self, update: int | None) -> None:
            super().__init__()
            self.update = update

    def __init__(self, view: View, replayed: bool = False) -> None:
        super().__init__(classes="-words")
        self.replayed = replayed
        self.border_title = Content(view.title)
        self.view, self.overview = view, OVERVIEW
        self.log_scale = False
        self.smoothing = STRENGTHS[0]
        self.cursor: int | None = None
        self.marked_update: int | None = None
        self.source: PlotData | None = None
        self.room: Margins = (0, 0)
        self._measured: tuple[object, Margins] = None, (0, 0)
        self._shown: object = None
        self._drawn: tuple[tuple[Size, bool], Picture | str] | None = None

    @property
    def shortcuts(self) -> tuple[Shortcut, ...]:
        """The keys of this view, for the footer; without a cursor in it, those of the cursor are left out."""
        if isinstance(self.view, WorldMap):
            return self.map_shortcuts
        if isinstance(self.view, ByPosition):
            return self.position_shortcuts
        instead = "answers" if isinstance(self.view, LearningMap) else "next region" if self.shows_map else "look"
        idle = () if self.view.of_run or self.shows_map else {("left", "right"), ("enter",)}
        return tuple(
            replace(each, title=instead) if each.keys == ("enter",) else each
            for each in self.SHORTCUTS
            if each.keys not in idle
        )

    @property
    def help_metrics(self) -> tuple[str, ...]:
        """The metrics shown, for the help screen."""
        return self.view.metrics

    def show(self, source: PlotData) -> bool:
        """Draw the current state; False if it is already drawn."""
        state = self.view, self.view.state(source), source.awaited
        self.source = source
        if state == self._shown:
            return False
        self._shown = state
        self.redraw()
        return True

    @property
    def margins(self) -> Margins:
        """Cells that the labels at both sides take."""
        lines = self.content_size.height
        what = self.view, self._shown, self.log_scale, lines
        if self._measured[0] != what and self.source is not None:
            self._measured = what, self.view.margins(self.source, self.log_scale, lines)
        return self._measured[1]

    def make_room(self, room: Margins) -> None:
        """Leave at least `room` cells for the labels."""
        if room != self.room:
            self.room = room
            self.redraw()

    def point(self, cursor: int | None) -> None:
        """Put the cursor on an update, or remove it."""
        self.cursor = cursor
        self._label()
        self.refresh()

    def mark_update(self, update: int | None) -> None:
        """Highlight the update on the screen, unless it is the newest."""
        if update != self.marked_update:
            self.marked_update = update
            self._label()
            self.refresh()

    def render(self) -> Content:
        size = Size(self.content_size.width, self.content_size.height)
        drawn_for = size, self._tinted
        if self._drawn is None or self._drawn[0] != drawn_for:
            self._drawn = drawn_for, self._draw(size)
        drawn = self._drawn[1]
        if isinstance(drawn, str):
            return keyed(drawn)
        content = drawn.content
        at = self.marked_update if self.cursor is None else self.cursor
        if at is not None and self.source is not None and self.view.of_run:
            if self.marked_update is not None:
                drawn = replace(drawn, content=marked(content, drawn.frame, self.marked_update, LOOKED_AT))
            content = drawn.with_cursor(at, " · ".join(self._notes()))
        content = self.with_box(content, drawn.frame.width)
        instead = self._instead(content)
        spans = [Span(start, end, instead.get(str(style), style)) for start, end, style in content.spans]
        return Content(content.plain, spans) if instead else content

    @property
    def _tinted(self) -> bool:
        """Whether the terminal has enough colours for shades."""
        app = self.app
        return not (app.no_color or app.native_ansi_color) and COLOURS[app.console.color_system] > 16

    def _notes(self) -> list[str]:
        """The events at the update under the cursor."""
        marks = [] if self.source is None else self.source.history.marks
        return [visible(mark.text) for mark in marks if mark.update == self.cursor]

    def _instead(self, content: Content) -> dict[str, str]:
        """Styles for few colours: with 16, a tint would hide what is drawn on it."""
        app = self.app
        if app.no_color and isinstance(self.view, Ratios):
            return {FIRST: "dim"}
        styles = {str(span.style) for span in content.spans} if isinstance(self.view, WorldMap) else set()
        if not self._tinted:
            return {style: unshaded(style) for style in styles} | ({} if app.no_color else {CURSOR: "reverse"})
        if app.console.color_system == "256":
            return {style: of_256(style, app.current_theme.dark) for style in styles}
        return {}

    def action_move(self, step: int) -> None:
        """Move the cursor along the updates; past the last one it disappears."""
        updates = self._updates()
        if not updates:
            return
        if self.cursor is None:
            self.post_message(self.Moved(updates[-1]))
            return
        beyond = [u for u in updates if (u - self.cursor) * step > 0]
        near = (min(beyond) if step > 0 else max(beyond)) if beyond else None
        if near is not None or step > 0:
            self.post_message(self.Moved(near))

    def put(self, view: View) -> None:
        """Show another view in this panel."""
        self.view = view
        self.redraw()
        self.post_message(self.Altered())

    def action_cycle(self, step: int) -> None:
        """Show the next view: first the four overviews, then all recorded metrics."""
        names = self.source.history.names() if self.source is not None else []
        views: list[View] = list(dict.fromkeys([*self.overview, *map(single, names)]))
        self.put(views[(views.index(self.view) + step) % len(views)] if self.view in views else views[0])

    def action_scale(self) -> None:
        """Switch between a linear and a logarithmic scale."""
        self.log_scale = not self.log_scale
        self.redraw()
        self.post_message(self.Altered())

    def action_smooth(self) -> None:
        """Draw a moving average over the values, then a stronger one, then none."""
        self.smoothing = STRENGTHS[(STRENGTHS.index(self.smoothing) + 1) % len(STRENGTHS)]
        self.redraw()

    def action_open(self) -> None:
        """Show the update under the cursor; of the learning map, its answers; of the pull map, the next region's."""
        if isinstance(self.view, LearningMap):
            self.post_message(Perform("morph", self.cursor))
        elif self.shows_map and self.source is not None:
            self.post_message(Perform("find", PullMap().next_region(self.source)))
        elif self.cursor is not None:
            self.post_message(UpdatePicked(self.cursor))

    def action_release(self) -> None:
        """Remove the cursor: titles show the latest values. Without a cursor the app handles the key."""
        if self.cursor is None:
            raise SkipAction
        self.post_message(self.Moved(None))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Explain the curves where the mouse is on their title; draw a box on the pull map."""
        self.drag(event)
        tip = self._tip() if event.y == 0 else ""
        if tip != str(self.tooltip or ""):
            self.tooltip = Content(tip) if tip else None

    def _tip(self) -> str:
        rows = [row for row in map(describe, self.view.metrics) if row is not None]
        readings = [f"{row.title}: {row.reading}" for row in rows if row.reading]
        return worded(
            " ".join([*readings, "Click for the next view."]),
            step_word(None if self.source is None else self.source.world),
        )

    def on_click(self, event: events.Click) -> None:
        """Put the cursor at the mouse; a second click shows that update. On the title, show the next view."""
        if event.y == 0:
            self.action_cycle(1)
            return
        updates = self._updates()
        drawn = self._drawn[1] if self._drawn is not None else None
        offset = event.get_content_offset(self)
        if offset is not None and updates and isinstance(drawn, Picture) and self.view.of_run:
            x = drawn.frame.x(offset.x)
            self.post_message(self.Moved(min(updates, key=lambda update: abs(update - x))))
            if event.chain > 1:
                self.action_open()

    def clipping(self) -> tuple[str, str]:
        """The text to copy: every value of the curves, as comma-separated lines."""
        names = [name for name in self.view.metrics if self.source is not None and self.source.history.series(name)[0]]
        columns = {name: dict(zip(*self.source.history.series(name), strict=True)) for name in names if self.source}
        updates = sorted({update for column in columns.values() for update in column})
        rows = [["update", *names]]
        rows += [[str(update), *(str(columns[name].get(update, "")) for name in names)] for update in updates]
        return "the curves' values", "\n".join(map(",".join, rows))

    def _updates(self) -> list[int]:
        if self.source is None:
            return []
        if self.view.of_run and not self.view.metrics:
            return list(self.source.history.updates)
        names = self.view.metrics if self.view.of_run else ("reward",)
        return sorted({update for name in names for update in self.source.history.series(name)[0]})

    def _draw(self, size: Size) -> Picture | str:
        # A recording that is still being read shows no text.
        drawn: Picture | str = "" if self.replayed else first_update(self.view.title)
        if self.source is not None:
            drawn = self.view.draw(self._fitted(self.source), size, self.log_scale, self.smoothing)
        self.set_class(isinstance(drawn, str), "-words")
        return drawn

    def _fitted(self, source: PlotData) -> PlotData:
        """The data with the room and the colours of this panel."""
        columns, lines = self.content_size
        fitted = replace(
            source, room=self.room, columns=columns, lines=lines, plain=self.app.no_color, tinted=self._tinted
        )
        return self.on_the_map(fitted)

    def redraw(self) -> None:
        """Draw the view again."""
        self._drawn = None
        self._label()
        self.refresh()

    def on_resize(self) -> None:
        """Fit the words in the border to the new width."""
        self._label()

    def _label(self) -> None:
        if self.source is not None:
            at = self.marked_update if self.cursor is None else self.cursor
            above, below = self.view.titles(self._fitted(self.source), at, self.log_scale, self.smoothing)
            room = self.outer_size.width - CORNERS
            self.border_title, self.border_subtitle = _fitting(above, room), _fitting(below, room)


def _fitting(words: Content, room: int) -> Content:
    """As many parts, separated by dots, as fit. The first part always remains; its name is cut before its value."""
    while words.cell_length > room and " · " in words.plain:
        words = words[: words.plain.rindex(" · ")]
    value = next((span.start for span in words.spans if str(span.style) == VALUE), 0)
    over = words.cell_length - room
    if over <= 0:
        return words
    if not value:
        return words.truncate(room, ellipsis=True)
    return Content.assemble(words[: max(value - over - 2, 0)], "… ", words[value:])
