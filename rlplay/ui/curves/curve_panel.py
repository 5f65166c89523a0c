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
from rlplay.ui.curves.first_views import OVERVIEW
from rlplay.ui.format.keyed import keyed
from rlplay.ui.format.legend import LOOKED_AT
from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.format.step_word import worded
from rlplay.ui.held_out.learning_map import LearningMap
from rlplay.ui.parts.line_panel import COLOURS, CORNERS
from rlplay.ui.parts.panel import Panel
from rlplay.ui.parts.panel_messages import Perform, UpdatePicked
from rlplay.ui.plot.drawn_curves import BAND, Margins
from rlplay.ui.plot.picture import CURSOR, Picture, Size, marked
from rlplay.ui.plot.plot_data import PlotData, first_update
from rlplay.ui.plot.smoothing import STRENGTHS
from rlplay.ui.plot.views import FIRST, VALUE, View, single
from rlplay.ui.pull.box_drag import BoxDrag
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.ratio_histogram import Ratios
from rlplay.ui.world.map_hands import MAP_HELP, MapHands
from rlplay.ui.world.shades import unshaded
from rlplay.ui.world.world_map import WorldMap


class CurvePanel(Panel, BoxDrag, MapHands, can_focus=True):
    """One plot: one or two curves over the updates, or the ratios of the last optimizer step."""

    HELP = f"""\
# Curves

One number per update, drawn over the whole run.

`←` and `→`, or a click, move a cursor in all panels at once; the titles then show the values at the cursor. `enter`, or
a second click, shows that update.
`↑` and `↓` show another metric here. `L` switches between a linear and a logarithmic scale. `S` draws a moving average
as TensorBoard does, of weight .6, then .9, then none; the values stay in grey beneath it. The numbers in the title and
at the cursor are never smoothed.
`esc` returns to the latest values.

The bars in the title of **Length** count the answers of the update on the screen by length: equal bins from the
shortest to the longest; the last may be narrower.

Marks below updates: ◆ a changed setting took effect, ↶ the run went back to this update, ↷ the run was resumed here.
Put the cursor on a mark to read the details. At ┊ a new stage begins, and the curves start again: they measure another
loss, other answers or another reward. While an older update is on the screen, {LOOKED_AT} marks it and its column is
highlighted.
Grey dashes are updates that the run discarded when it went back. × marks a value that was not a number. The shade
around a mean is one standard deviation to each side.

Two solid lines (**Reward over gold**) are two metrics in one plot, with their held-out values as points. “Left” and
“right” name the scale of each: their heights do not compare. “Same scale” says that they do.

**Ratio** is different: bars show the distribution of the importance ratios in the last optimizer step, with counts on a
logarithmic scale and lines at 1 − ε and 1 + ε. The bright part of a bar is clipped: A > 0 above the band or A < 0 below
it, so the surrogate's gradient is exactly zero (a KL term or an entropy bonus in the loss still acts). Tokens outside
the band on the other side still get a gradient. Clipping does not bound the ratio.

**Pull map** (`P`) has a dot for each sampled token: its importance ratio across, its advantage A up; blue dots have
A > 0, orange ones A < 0. In the last of several optimizer steps, yellow dots are silent: they are clipped, so the
surrogate gives them no gradient. With one step per batch every ratio in that step is 1, so the map shows the ratio
after the update; it then takes the place of Ratio too. "Moved with A" is the share of tokens that became likelier with
A > 0 or less likely with A < 0, of all that moved. Tokens share weights, so it need not be 100 %. Ratios beyond the
ends are drawn at the ends, marked ≤ and ≥. Drag a box with the mouse, or press `enter` for one region after the other
(between 1 and the bounds, A > 0, then A < 0): Tokens and Answers then show only what is in it, its edges excluded, in
every update. `f` and `F` go from token to token, `esc` shows all again. Tokens names the box as `/` takes it, as in
`ratio 0.8..1.2 A 0..`; an end without a number is open.

**Trust region** replaces Ratio if surrogate=trpo: the search for one step. Each bar is an iteration of conjugate
gradient; its height is the residual (logarithmic, three orders of magnitude). Below are the steps tried, as shares of
the way to the KL limit, each with its exact KL, the gain of the surrogate, and whether it was taken.

**Belief** (`B`) stacks the probabilities of the next token, one column for each update. The place is the token under
the cursor, at first the first token of the first answer. Each band is one token: its height is the probability under
the policy that sampled that update, at the sampling temperature. “Others” is the rest of 1. If most updates ask the
same prompt, the river is of that prompt. Otherwise it is the mean over all prompts of an update whose answers began
with the same tokens, and the title gives their number; other prompts then move the bands, too. A token that is not
among the recorded candidates of a prompt counts as 0 there. An update in which no answer came by this place leaves a
gap. In a world, the place is the square. The line below gives each token's probability in the first and in
the last update, the most changed first; in little room, it names the bands without a name in the picture.

**Answer tree** (`T`) shows the answers to one prompt of the update on the screen, merged token by token as far as they
agree. A bar is as long as the share of answers that begin this way. Beside it are their number and their mean reward,
a Monte-Carlo estimate of the value of this beginning. Green is above the mean reward of all answers to the prompt, red
below it. If every reward of the update is 0 or 1, ✓ and ✗ mark whole answers. `▸` marks a branch that has no room to
open. The highlighted line has the token under the cursor: `i` opens the probe there. `[` and `]` go through the
updates.

{MAP_HELP}
**Learning map** (`E`) shows the prompts that are never trained on, a column for each evaluation, sorted into bands. A
column reaches half-way to the next one; between them nothing was measured.
Every evaluation asks the same prompts with the same random numbers, so a change comes from the policy. The fuller a
cell, the higher the mean reward of its prompts; the line below names the ends. A prompt counts as right if its mean
reward is at least half-way between these ends. **Always** and **never**: right at every evaluation, or at none.
**Learned**: wrong at first and right at last. **Forgotten**: the reverse. **Wavered**: at last as at first, but not in
between. A band is as high as its share of the prompts, but at least a line. The title counts the right prompts at the
first and at the last evaluation. `enter`, or a second click, opens the answers themselves.
"""
    help_terms = ("KL divergence", "KL to reference", "KL to old policy", "KL estimators")
    """Of the glossary; the help ends with them."""
    DEFAULT_CSS = """
    CurvePanel {
        width: 1fr; height: 1fr; padding: 0 1; border: round $border;
        border-title-color: $text-muted; border-subtitle-color: $text-muted; border-subtitle-align: left;
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
    SHORTCUTS = (
        Shortcut(("left", "right"), "cursor"),
        Shortcut(("up", "down"), "metric"),
        Shortcut(("enter",), "look"),
        Shortcut(("L",), "log"),
        Shortcut(("S",), "smooth"),
        Shortcut(("B", "T", "P", "E"), "views", False),
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
        self._drawn: tuple[Size, Picture | str] | None = None

    @property
    def shortcuts(self) -> tuple[Shortcut, ...]:
        """The keys of this view, for the footer; without a cursor in it, those of the cursor are left out."""
        if isinstance(self.view, WorldMap):
            return self.map_shortcuts
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
        state = self.view, self.view.state(source)
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
        if self._drawn is None or self._drawn[0] != size:
            self._drawn = size, self._draw(size)
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

    def _notes(self) -> list[str]:
        """The events at the update under the cursor."""
        marks = [] if self.source is None else self.source.history.marks
        return [visible(mark.text) for mark in marks if mark.update == self.cursor]

    def _instead(self, content: Content) -> dict[str, str]:
        """Styles for few colours: with 16, a tint would hide the curve; with 256, it would change its hue."""
        app = self.app
        if app.no_color:
            return {FIRST: "dim"} if isinstance(self.view, Ratios) else {}
        if app.native_ansi_color or COLOURS[app.console.color_system] <= 16:
            styles = {str(span.style) for span in content.spans} if isinstance(self.view, WorldMap) else set()
            return {style: unshaded(style) for style in styles} | {BAND: "", CURSOR: "reverse"}
        if app.console.color_system == "256":
            return {BAND: "on #1c1c1c" if app.current_theme.dark else "on #eeeeee"}
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
        views: list[View] = [*self.overview, *(single(name) for name in names)]
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
            drawn = self.view.draw(
                self.on_the_map(replace(self.source, room=self.room, plain=self.app.no_color)),
                size,
                self.log_scale,
                self.smoothing,
            )
        self.set_class(isinstance(drawn, str), "-words")
        return drawn

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
            columns, lines = self.content_size
            source = replace(self.source, room=self.room, columns=columns, lines=lines, plain=self.app.no_color)
            above, below = self.view.titles(self.on_the_map(source), at, self.log_scale, self.smoothing)
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
