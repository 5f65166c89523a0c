"""Four small panels in a row: reward, KL, importance ratio, length with entropy. Each can show any metric.

On a large screen, further panels make a column beside the token. If a map, a tree or a river is the stage, one panel
is large: it has most of the room, the column has the others, and the row makes way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget

from rlplay.algorithms.settings import UNKNOWN, Settings
from rlplay.trace.history import History
from rlplay.trace.pulls import has_pulls
from rlplay.trace.update import Update
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.elsewhere import Elsewhere
from rlplay.ui.curves.first_views import LARGE, NAMED, OVERVIEW, ROW, further, of_metrics, overview, small, view_of
from rlplay.ui.curves.panel_holds import has, is_layer, is_part
from rlplay.ui.curves.run_details import RunDetails
from rlplay.ui.plot.curve_view import CurveView
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.tree import AnswerTree
from rlplay.ui.plot.two_lines import TwoLines
from rlplay.ui.plot.view import View
from rlplay.ui.position.by_position import ByPosition
from rlplay.ui.river.belief_river import River
from rlplay.ui.world.painted_world import PaintedWorld
from rlplay.ui.world.world_map import WorldMap, least_width
from rlplay.verbs import MAP_VIEWS
from rlplay.worlds.world import World

_TWO_ROWS = 12
_LEAST_LINES = 5
"""Of a panel with its frame."""
_COLUMNS = ((150, 4), (114, 3), (90, 2), (0, 1))
_FRAME = 4
"""Columns of a panel's border and padding."""
_FEW = 2
"""Panels that share the room if curves are the subject, and nothing says which."""


class CurvePanels(Widget):
    """As many panels as fit, in one or two rows; up and down show the other views in a panel."""

    DEFAULT_CSS = "CurvePanels { layout: grid; height: 10; CurvePanel.-beyond { display: none; } }"

    def __init__(self, replayed: bool = False, beside: int = 0, stage: str = "all") -> None:
        """At most `beside` panels make a column elsewhere: the widget `beside`. The widget `subject` has the large one.

        The stage decides which of them have room.
        """
        super().__init__()
        self.row = [CurvePanel(view, replayed) for view in OVERVIEW[:ROW]]
        self._beside = [CurvePanel(view, replayed) for view in further(OVERVIEW, UNKNOWN)[:beside]]
        self.beside = Elsewhere(self, self._beside, "beside")
        self._large = CurvePanel(LARGE.get(stage, LARGE["map"]), replayed)
        self.subject = Elsewhere(self, [self._large], "subject")
        self._large.set_class(stage not in LARGE, "-beyond")
        self.stage = stage
        self._replayed = replayed
        self._given: tuple[View, ...] = tuple(panel.view for panel in self.panels)
        self._stacked = False
        self._leads = False  # whether the first panel shows more than the reward, which is in the header
        self._exhibited: Sequence[str] = ()  # the curves that a lesson speaks of
        self._asked_for: Sequence[str] = ()  # the curves that were requested while there was room for one
        self._due: list[tuple[CurvePanel, PlotData]] = []
        self._source: PlotData | None = None
        self._stepped: Update | None = None
        self._pulled: Update | None = None  # the last one that has a pull map
        self._settings = UNKNOWN
        self._cursor, self._lens = (0, 0), ""
        self._arranged_for: tuple[World | None, int] = None, 0
        self.details = RunDetails(steered=not replayed)
        self._paint = PaintedWorld()
        self._put_up: dict[CurvePanel, str] = {}

    def compose(self) -> ComposeResult:
        yield from self.row

    @property
    def panels(self) -> list[CurvePanel]:
        """Those of the row, those beside the token, and the large one."""
        return [*self.row, *self._beside, self._large]

    def set_stage(self, stage: str) -> None:
        """Arrange the panels for `stage`, one of `verbs.STAGES`; those outside the row show what belongs to it."""
        self.stage = stage
        self._given = self._first_views(self.panels[0].overview, self._settings)
        for panel, view in zip(self.panels[len(self.row) :], self._given[len(self.row) :], strict=True):
            self._put_up.pop(panel, None)
            if panel.view != view:
                panel.put(view)
        for panel in [self._large] if stage in LARGE else [self._large, *self._beside]:
            panel.set_class(stage not in LARGE, "-beyond")  # at once: the keys go to a panel in sight
        if self._source is not None:
            self._due = [(panel, self._source) for panel in self.panels]
        self.rearrange()

    @property
    def first(self) -> CurvePanel:
        """The one that matters most."""
        return self._large if self.stage in LARGE else next(iter(self.seen), self.row[0])

    @property
    def shown(self) -> set[str]:
        """The metrics and named views in sight."""
        names = {name for name in NAMED for panel in self.seen if panel.region and has(panel, name)}
        return names | {name for panel in self.seen if panel.region for name in panel.view.metrics}

    def offers(self, name: str) -> bool:
        """Whether the view `name` can be about this run: a map needs a world with squares."""
        world = self.details.world
        return not isinstance(NAMED[name], WorldMap) or (world is not None and not world.arms)

    def _first_views(self, views: tuple[View, ...], settings: Settings) -> tuple[View, ...]:
        """What each of the panels shows unless somebody asks for something else."""
        large = LARGE.get(self.stage, LARGE["map"])
        beside = small(views, large) if self.stage in LARGE else further(views, settings)
        return (*views[:ROW], *(*beside, *views)[: len(self._beside)], large)

    def mark_update(self, update: int | None) -> None:
        """Highlight the update on the screen, unless it is the newest."""
        for panel in self.panels:
            panel.mark_update(update)

    def take(self, details: RunDetails) -> None:
        """Take what is known of the run besides its numbers; `prepare` draws it."""
        self.details = details

    def show(self, history: History, live: Update | None, settings: Settings) -> None:
        """Draw the run so far and the update on the screen, which had `settings`."""
        self.prepare(history, live, settings)
        self.draw_all()

    def follow(self, cursor: tuple[int, int], lens: str = "") -> None:
        """Show what is about the token under the cursor, and about the statistic `lens` that colours the tokens."""
        self._cursor, self._lens = cursor, lens
        for panel in self.seen:
            if isinstance(panel.view, WorldMap | River | AnswerTree | ByPosition) and panel.source is not None:
                panel.show(replace(panel.source, cursor=cursor, lens=lens))

    def fit(self, settings: Settings) -> bool:
        """Whether the panels offer the views for these settings."""
        return self.panels[0].overview == self._overview(settings)

    def _overview(self, settings: Settings) -> tuple[View, ...]:
        details = self.details
        return overview(settings, details.world, details.wanted, details.only, details.mismatch)

    def prepare(self, history: History, live: Update | None, settings: Settings) -> None:
        """Prepare the run so far for `draw_next`, which draws one panel at a time."""
        if live is not None and (
            live.steps or live.searched or (self._stepped is not None and live.number < self._stepped.number)
        ):
            self._stepped, self._settings = live, settings
            if has_pulls(live) or (self._pulled is not None and live.number < self._pulled.number):
                self._pulled = live
        self._take(self._overview(settings), settings)
        if self._arranged_for != (self.details.world, self._alone):
            self.rearrange()
        squares = settings.squares if self.details.squares is None else self.details.squares
        painted, repainted = self._paint.of(self.details.world, squares), squares != settings.squares
        # Keep the ratios of the previous update until this one has ratios.
        settings = settings if self._stepped is None else self._settings
        source = PlotData(history, self._stepped, settings, (0, 0), self._replayed, live, painted, self._cursor)
        source = replace(
            source, beliefs=self.details.beliefs, evaluations=self.details.evaluations, box=self.details.box,
            guess=self.details.guess, steered=self.details.steered, foreign=self.details.foreign,
            on_record=self.details.on_record, repainted=repainted, pulled=self._pulled,
            awaited=self.details.awaited, lens=self._lens,
        )  # fmt: skip
        self._source = source
        for panel in self.panels:
            panel.set_class(source.guess is not None and has(panel, source.guess.metric), "-lit")
        waiting = [panel for panel, _ in self._due]  # the longest wait comes first
        others = (panel for panel in self._drawn if panel not in waiting)
        self._due = [(panel, source) for panel in (*waiting, *others)]

    @property
    def shows_answers(self) -> bool:
        """Whether a panel draws the answers themselves, so that it changes with every token of them."""
        return any(isinstance(panel.view, River | AnswerTree) for panel in self._drawn)

    def draw_all(self) -> None:
        """Draw all panels with news."""
        while self.draw_next():
            pass

    def draw_next(self) -> bool:
        """Draw one panel with news; False if there is none. A view in sight first reads a record that it lacks."""
        for kind, read in self.details.readers.items():
            lacking = [panel for panel in self.seen if isinstance(panel.view, kind)]
            if not self._due and lacking and read():
                self._due = [(panel, panel.source) for panel in lacking if panel.source is not None]
                if not self._due:
                    return False
        while self._due:
            panel, source = self._due.pop(0)
            if panel.show(source):
                self.align()
                return True
        return False

    @on(CurvePanel.Altered)
    @on(CurvePanel.Moved)
    def hear(self, event: CurvePanel.Altered | CurvePanel.Moved) -> None:
        """Align the panels with the one that shows something else now; put the cursor of all on the same update."""
        if isinstance(event, CurvePanel.Moved):
            event.stop()
            for panel in self.panels:
                panel.point(event.update)
        elif self._leads == isinstance(self.panels[0].view, TwoLines):
            self.align()
        else:
            self.rearrange()

    def align(self) -> None:
        """Align stacked plots by column: all leave the margins that the widest labels need."""
        row, beside = ([each for each in panels if each in self.seen] for panels in (self.row, self._beside))
        for panels, stacked in ((row, self._stacked), (beside, True)):
            left, right = zip((0, 0), *(panel.margins for panel in panels if stacked), strict=True)
            for panel in panels:
                panel.make_room((max(left), max(right)))

    def _take(self, views: tuple[View, ...], settings: Settings) -> None:
        """Take the views of another algorithm; a view that the user chose stays."""
        given = self._first_views(views, settings)
        for place, (panel, view) in enumerate(zip(self.panels, given, strict=True)):
            before, panel.overview = self._given[place], views
            if panel.view == before != view:
                panel.put(view)
        self._given = given

    @property
    def seen(self) -> list[CurvePanel]:
        """The panels that have room."""
        return [panel for panel in self.panels if not panel.has_class("-beyond")]

    @property
    def _drawn(self) -> list[CurvePanel]:
        """Those in sight, and those of the row that may have room at any time."""
        row = [] if self.stage in LARGE else self.row
        return [*row, *(panel for panel in self.seen if panel not in row)]

    def put_up(self, metric: str) -> None:
        """Show a view of `NAMED` or a metric: in the panel that has it, else in the focused one, else in the last one.

        Curves requested earlier keep their panels as long as a panel other than the first is free. Those for which
        there is no room are shown as soon as there is.
        """
        self._exhibited = ()
        if len(self.seen) == 1:
            self._asked_for = [*(each for each in self._asked_for if each != metric), metric]
        if (panel := self._put(metric)) is not None:
            panel.focus()

    def _put(self, metric: str) -> CurvePanel | None:
        """Put up a view in the panel for it; None if there is none: the large one keeps its subject."""
        large = [self._large] if isinstance(NAMED.get(metric), WorldMap) and self._large in self.seen else []
        seen = large or [panel for panel in self.seen if panel is not self._large or has(panel, metric)]
        if not seen:
            return None
        put_up = [panel for panel, wanted in self._put_up.items() if panel in seen and has(panel, wanted)]
        free = [panel for panel in seen if panel not in put_up]
        having = [panel for panel in seen if has(panel, metric)]
        layers = [panel for panel in seen if metric in MAP_VIEWS and is_layer(panel.view)]
        focused = [panel for panel in free if panel.has_focus]
        keeps_first = len(self._exhibited) < len(seen)
        others = [panel for panel in reversed(free) if panel is not self.panels[0] or not keeps_first]
        panel = next(iter([*having, *layers, *focused, *others, *put_up, *free]))
        if panel not in having:
            crowded = len(self._exhibited) > len(seen)  # a view of two metrics saves a panel
            both = next(
                (v for v in panel.overview if crowded and isinstance(v, CurveView) and metric in v.metrics), None
            )
            if both is not None:
                panel = next((each for each in seen if is_part(each.view, both)), panel)
            panel.put(both or view_of(metric))
            self._withdraw(metric, panel)
        self._put_up.pop(panel, None)
        self._put_up[panel] = metric  # the latest request is the last to be replaced
        return panel

    def _withdraw(self, metric: str, keeps: CurvePanel) -> None:
        """Take the view away from panels that had no room, which would show it a second time once they have."""
        for panel, given in zip(self.panels, self._given, strict=False):
            if panel is not keeps and has(panel, metric) and panel.view != given:
                self._put_up.pop(panel, None)
                panel.put(given)

    def on_resize(self) -> None:
        self.rearrange()

    def rearrange(self) -> None:
        """Show the panels that have room, and in them what was asked for."""
        most = self._most()
        self.set_class(not most, "-idle")
        # Hidden, it has no size; it will be as wide as the screen.
        self._arrange_row(self.size if self.size.area or not self.is_attached else self.app.size, most)
        self._fill()

    def _most(self) -> int:
        """The panels of the row that the stage leaves."""
        spoken_of = len(self._exhibited)
        narrow = self.is_attached and self.screen.has_class("-narrow")
        match self.stage:
            case "all":
                return len(self.row)
            case "curve":
                return spoken_of or self._alone or min(len(self.details.wanted) or _FEW, _FEW)
            case stage if stage in LARGE and self.beside.region:  # the column has the others
                return 0
            case stage if stage in LARGE or stage == "token" or narrow:
                return spoken_of
            case "pair":
                return max(spoken_of, _FEW)
            case _:
                return max(spoken_of, 1)

    @property
    def _alone(self) -> int:
        """The panels of a run that has nothing but curves."""
        return len(of_metrics(self.details.only))

    def exhibit(self, metrics: Sequence[str]) -> None:
        """Put up the curves of `metrics` together, without the focus; again after each change of the size."""
        self._exhibited = metrics
        self.rearrange()

    def _arrange_row(self, size: Size, most: int) -> None:
        """Choose as many panels of the row as have room in `size`, `most` at most, and their columns."""
        columns = next(count for width, count in _COLUMNS if size.width >= width)
        alone = columns == 1  # then the header shows the reward: the first panel is seen there
        if self.details.world is not None:
            columns = max(1, min(columns, size.width // (least_width(self.details.world) + _FRAME)))
        self._arranged_for = self.details.world, self._alone
        if self.stage == "curve":  # side by side, unless that makes them narrow
            columns = min(columns, most, _FEW)
        elif self.stage != "all":
            columns = min(columns, most)
        rows = 2 if columns < most and size.height >= _TWO_ROWS else 1
        if columns == 1:
            rows = max(rows, min(len(self._exhibited), len(self.row), size.height // _LEAST_LINES))
        columns = max(min(columns, len(self.row) // rows), 1)
        self.styles.grid_size_columns, self.styles.grid_size_rows = columns, rows
        self._leads = isinstance(self.panels[0].view, TwoLines)
        for index, panel in enumerate(self.row):
            first = int(alone and columns * rows == 1 and not self._leads)
            there = min(columns * rows, most)
            panel.set_class(not first <= index < first + there, "-beyond")
        self._stacked = rows > 1

    def _fill(self) -> None:
        """Put up what was asked for in the panels that have room now."""
        self._take_back()
        if len(self.seen) > 1:
            for metric in self._asked_for[-len(self.seen) :]:
                self._put(metric)
            self._asked_for = ()
        there = [metric for metric in self._exhibited if any(has(panel, metric) for panel in self.seen)]
        for metric in (*there, *(each for each in self._exhibited if each not in there)):
            self._put(metric)
        if self._source is not None:
            self._due += [(panel, self._source) for panel in self.seen if panel not in self.row]
        self.align()

    def _take_back(self) -> None:
        """Where the first panel is seen again, its curve leaves the panel that showed it meanwhile."""
        first = self.panels[0]
        for panel, given in zip(self.panels, self._given, strict=False):
            doubled = panel is not first and first in self.seen and has(first, self._put_up.get(panel, ""))
            if doubled:
                del self._put_up[panel]
                panel.put(given)
