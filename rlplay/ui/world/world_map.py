"""A tiny world as a map: the policy on every square, its worth, and the path of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from rlplay.ui.plot.picture import Axes, Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import VALUE, OfUpdate
from rlplay.ui.world.arms import arms
from rlplay.ui.world.board import Board, board
from rlplay.ui.world.large_squares import large_squares
from rlplay.ui.world.layers import KINDS, Kind
from rlplay.ui.world.map_legend import legend
from rlplay.ui.world.reading import Reading, Way, reading, shown_update, way, worth
from rlplay.ui.world.short_numbers import short
from rlplay.ui.world.small_squares import NARROWEST, lines_of, small_squares, square_width
from rlplay.ui.world.small_squares import square_at as small_square_at
from rlplay.worlds.world import World

if TYPE_CHECKING:
    from rlplay.worlds.painting import Painting

_TITLES: dict[Kind, str] = {
    "policy": "Map", "values": "Map · values", "visits": "Map · visits", "change": "Map · change",
    "optimal": "Map · optimal",
}  # fmt: skip
_NAMES = {"V": "value V", "G": "return G", "max Q": "max Q"}


@dataclass(frozen=True)
class WorldMap(OfUpdate):
    """A view of one update of a world, not of the run, so it has no cursor of its own.

    "policy": the chances of the moves, the value of the square and how often it was visited; "values": the learned
    value beside the exact one of this policy; "visits"; "change": the chances before and after the update; "optimal":
    the best moves and V*, by dynamic programming. Where action values are learned, they take the place of values.
    """

    kind: Kind = "policy"

    @property
    def title(self) -> str:
        """The title of an empty panel."""
        return _TITLES[self.kind]

    def turned(self, step: int) -> WorldMap:
        """The next layer, or with −1 the one before."""
        return WorldMap(KINDS[(KINDS.index(self.kind) + step) % len(KINDS)])

    def state(self, source: PlotData) -> object:
        """The update and its phase, the answer under the cursor, and what the values depend on."""
        shown = shown_update(source)
        if shown is None:
            return None, source.settings.gamma, id(source.world)
        sampled = shown.sampled is not None and shown.sampled.done  # only then is the policy on every square known
        which = shown.number, shown.phase, shown.completions, sampled
        return which, source.cursor, source.settings.gamma, id(source.world)

    def draw(self, source: PlotData, size: Size, _log: bool, _smoothing: float = 0.0) -> Picture | str:
        """The squares, as large as they fit, with a legend; a bandit's arms as bars."""
        found = reading(source)
        if found is None:
            return "This run has no world." if source.history.updates else "The map of the world will be drawn here."
        content = (
            arms(found, size) if found.world.arms else self._squares(found, way(source, found), size, source.tinted)
        )
        return content if isinstance(content, str) else Picture(content, Axes(size.width, 0, size.width - 1, 0, 1))

    def _squares(self, found: Reading, marked: Way, size: Size, shaded: bool) -> Content | str:
        world, large = found.world, board(found.world, size)
        if large is not None:
            lines = large_squares(self.kind, found, marked, large, size.width)
            return Content("\n").join(
                [*lines, *self._below(found, marked, size.width, large, shaded)[: size.height - len(lines)]]
            )
        if size.height < len(world.map) or square_width(world, size.width) < NARROWEST:
            return f"The map takes {len(world.map)} lines and {least_width(world)} columns: make the terminal larger."
        lines = small_squares(self.kind, found, marked, size.width, size.height)
        return Content("\n").join(
            [*lines, *self._below(found, marked, size.width, None, shaded)[: size.height - len(lines)]]
        )

    def _below(self, found: Reading, marked: Way, width: int, large: Board | None, shaded: bool) -> list[Content]:
        """The lines below the squares, the most important first."""
        if marked.painting is not None:
            from rlplay.ui.world.brush_words import brush_lines

            return brush_lines(marked.painting, width)
        if marked.walk is None:
            return legend(self.kind, found, marked, width, large, shaded)
        from rlplay.ui.world.walk_words import walk_lines

        return walk_lines(marked.walk, found, width)

    def square_at(self, world: World, size: Size, x: int, y: int) -> str | None:
        """The square in column `x` of line `y` of a panel of this size."""
        large = board(world, size)
        return small_square_at(world, size, x, y) if large is None else large.square_at(x, y)

    def brush_at(self, painting: Painting, size: Size, x: int, y: int) -> int | None:
        """The brush there, while the world is painted."""
        from rlplay.ui.world.brush_words import brush_places

        large = board(painting.world, size)
        first = lines_of(painting.world, size.height) if large is None else large.lines
        places = brush_places(painting, size.width).items()
        return next((number for number, (line, left, right) in places if y == first + line and left <= x < right), None)

    def titles(
        self, source: PlotData, _cursor: int | None, _log: bool, _smoothing: float = 0.0
    ) -> tuple[Content, Content]:
        """Above, what the numbers are; below, the value of the start: learned, of this policy exactly, and optimal."""
        found = reading(source)
        if found is None:
            return Content(self.title), Content("")
        large = board(found.world, Size(source.columns, source.lines)) is not None
        below = _at_the_start(found)
        if source.painting is not None and source.painting.note:
            below = Content.styled(source.painting.note, "$warning")
        if source.walk is not None:
            from rlplay.ui.world.walk_words import walk_summary

            below = walk_summary(source.walk, found)
        return Content(self.title + self._words(found, large, source.lines)), below

    def _words(self, found: Reading, large: bool, lines: int) -> str:
        """What the numbers are; where the squares are large, the legend says it."""
        if found.world.arms:
            return " · reward · p before → after"
        if large:
            return {"policy": " · chances", "values": " learned and exact"}.get(self.kind, "")
        visits = " · ×visits" if lines >= 2 * len(found.world.map) else ""
        if found.learns_q and self.kind in ("policy", "change"):
            return f" · best move by Q · max Q{visits or ' · ×visits' if self.kind == 'policy' else ' before → after'}"
        move = f" · move · {_NAMES[found.valued]}{visits}" if found.policies else ""
        return {
            "policy": move, "change": " · before → after", "optimal": " · best moves · V*",
            "values": " · learned = exact", "visits": "",
        }[self.kind]  # fmt: skip


MAPS = WorldMap(), WorldMap("change"), WorldMap("optimal")


def _at_the_start(found: Reading) -> Content:
    """What the first start is worth: learned, under this policy exactly, and at best.

    Where action values are learned, exactly under the greedy policy of Q, and under the ε-greedy one.
    """
    start = found.world.starts[0]
    parts = []
    learned = found.chart.squares[start]
    if worth(learned) is not None and not found.learns_q:  # max Q is on the square
        parts.append((f"{found.valued} ", worth(learned)))
    for label, policy in (("greedy ", found.greedy), ("ε " if found.greedy else "exact ", found.policies)):
        if found.covers(policy):
            values = found.values_of(policy)
            parts.append((label, None if values is None else values[start]))
    parts.append(("best ", None if found.best is None else found.best.values[start]))
    endless = {"best ": "not finite"}  # a reward can be earned for ever; a policy's own value lacks an end of the walk
    words = [
        Content.assemble(label, (endless.get(label, "never arrives") if v is None else short(v), VALUE))
        for label, v in parts
    ]
    return Content.assemble(f"{start} ", Content(" · ").join(words))


def least_width(world: World) -> int:
    """The columns of the terminal that the map of a world needs."""
    return 0 if world.arms else NARROWEST * len(world.map[0]) + 2
