"""What the keys do on a map: other layers, and a walk of the user's own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import events
from textual.widget import Widget

from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import View
from rlplay.ui.world.world_map import WorldMap

if TYPE_CHECKING:
    from rlplay.worlds.walking import Walk

MOVES = {"up": "↑", "right": "→", "down": "↓", "left": "←"}
LAYERS = {"left": -1, "right": 1}
_KEYS = (Shortcut(("left", "right"), "layer"), Shortcut(("enter",), "walk"), Shortcut(("up", "down"), "metric"))
_ON_A_WALK = Shortcut(tuple(MOVES), "walk"), Shortcut(("enter",), "walk again")
_END = (Shortcut(("escape",), "end"),)
MAP_HELP = """\
**Map** shows a world. `←` and `→` go through its layers, and the legend below the squares explains their marks.
**Chances**: an arm for each move, as long as the policy is likely to make it, to a quarter; the likeliest is bright and
has a head. While all are equally likely, none has. **Values**: large is the value that was learned, V by the critic or
the mean return of the moves made there. After `=` stands the exact value of the same policy, which follows from the
rules of the world without any walk; Δ is the difference. Where Q is learned, its values stand at the four sides.
**Visits**, **change** (of every chance in this update) and **optimal** (the best moves and V*) are the others. On all
of them, footprints show the walk under the cursor, and a frame the square of its move.

`enter` on the map puts you on the start: the arrow keys walk, `esc` ends. The rules for you are those for the policy,
and a move slips with the world's own chance. Below the squares stand what each move earned, your return, and what the
policy's walks of this update returned on average.
"""


class MapHands(Widget):
    """A panel that may show a map: on it, `←` and `→` go through the layers, and `enter` begins a walk."""

    view: View
    source: PlotData | None
    walk: Walk | None = None
    """The walk that the user makes."""
    walk_ended = False
    """Whether the user has ended a walk, or a walk of the user has ended, since the last one began."""
    _walks = 0

    def put(self, view: View) -> None:
        """Show another view in this panel."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the view again."""
        raise NotImplementedError

    @property
    def on_map(self) -> bool:
        """Whether the panel shows a map with squares to walk on."""
        world = None if self.source is None else self.source.world
        return isinstance(self.view, WorldMap) and world is not None and not world.arms

    @property
    def map_shortcuts(self) -> tuple[Shortcut, ...]:
        """The keys of the map, for the footer."""
        if self.walk is None:
            return _KEYS
        return _ON_A_WALK[:1] * (not self.walk.over) + _ON_A_WALK[1:] * self.walk.over + _END

    def on_the_map(self, source: PlotData) -> PlotData:
        """`source` with what the user does on the map."""
        return replace(source, walk=self.walk) if self.walk is not None and self.on_map else source

    async def on_key(self, event: events.Key) -> None:
        """Take the keys that mean something on a map, before the panel does."""
        if isinstance(self.view, WorldMap) and self._takes(event.key):
            event.stop()
            event.prevent_default()

    def _takes(self, key: str) -> bool:
        if key == "enter" and self.on_map and (self.walk is None or self.walk.over):
            self.post_message(Perform("walk"))
        elif self.walk is not None and key == "escape":
            self.end_walk()
        elif self.walk is not None and key in MOVES:
            self._go(MOVES[key])
        elif key in LAYERS and isinstance(self.view, WorldMap):
            self.put(self.view.turned(LAYERS[key]))
        else:
            return False
        return True

    def begin_walk(self, best: bool = False) -> None:
        """Put the user on a start; with `best`, walk to the end as the rules say is best."""
        from rlplay.worlds.planning import plan
        from rlplay.worlds.walking import Walk

        assert self.source is not None
        world = self.source.world
        assert world is not None
        walk = Walk(world, world.starts[self._walks % len(world.starts)], self._walks)
        self.walk_ended = False
        self._walks += 1
        if best:
            with suppress(ValueError):  # a reward that can be earned for ever
                moves = plan(world, self.source.settings.gamma)
                while not walk.over:
                    walk = walk.on(moves.best(walk.square))
        self._set(walk)

    def end_walk(self) -> None:
        """Leave the walk; the map shows the answer under the cursor again."""
        self._set(None)

    def _go(self, move: str) -> None:
        assert self.walk is not None
        if not self.walk.over and move in self.walk.world.moves:
            self._set(self.walk.on(move))

    def _set(self, walk: Walk | None) -> None:
        """Show the walk; if it has ended, say so, because a lesson may wait for that."""
        self.walk = walk
        self.redraw()
        if walk is None or walk.over:
            self.walk_ended = True
            self.post_message(Perform("walk", "ended"))
