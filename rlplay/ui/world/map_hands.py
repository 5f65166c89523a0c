"""What the keys do on a map: other layers, and a walk of the user's own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import events

from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.world.map_brush import MOVES, MapBrush
from rlplay.ui.world.world_map import WorldMap

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlplay.worlds.walking import Walk
    from rlplay.worlds.world import World

LAYERS = {"left": -1, "right": 1}
_KEYS = (Shortcut(("left", "right"), "layer"), Shortcut(("enter",), "walk"), Shortcut(("number_sign",), "paint", False),
         Shortcut(("up", "down"), "metric", False))  # fmt: skip
_OF_ARMS = _KEYS[:1] + _KEYS[-1:]
_ON_A_WALK = Shortcut(tuple(MOVES), "walk"), Shortcut(("enter",), "walk again")
_PAINTING = (
    Shortcut(tuple(MOVES), "square"), Shortcut(("enter",), "paint"), Shortcut(("z",), "undo"),
    Shortcut(("escape",), "done"),
)  # fmt: skip
_END = (Shortcut(("escape",), "end"),)
MAP_HELP = """\
**Map** shows a world. `←` and `→` go through its layers, and the legend below the squares explains their marks.
**Chances**: an arm for each move, as long as the policy is likely to make it, to a quarter; the likeliest is bright and
has a head. In narrow squares it is a large arrow, and the others are thin lines. While all are equally likely, none
has a head. **Values**: large is the value that was learned, V by the critic or
the mean return of the moves made there. The number after `=` is the exact value of the same policy, which follows
from the rules of the world without any walk; Δ is the difference. Where Q is learned, its values are at the four sides.
**Visits**, **change** (of every chance in this update) and **optimal** (the best moves and V*) are the others. On all
of them, footprints show the walk under the cursor, and a frame the square of its move.

`enter` on the map puts you on the start: the arrow keys walk, or a click beside you; `esc` ends. The rules for you are
those for the policy, and a move slips with the world's own chance. Below the squares you see what each move earned,
your return, and what the policy's walks of this update returned on average.

`#` gives you brushes: press `0` to `6`, or click one below the squares, then click or drag over the squares. Or move
the frame with the arrow keys and press `enter`. `+` and `−` change the reward that brush 6 pays, `z` takes a stroke
back. Meanwhile the map shows the best moves, which follow at once. The run goes on: its next update begins in the
painted world. The paint is the setting `squares`.
"""


class MapHands(MapBrush):
    """A panel that may show a map: `←` and `→` go through the layers, `enter` begins a walk, and it can be painted."""

    source: PlotData | None
    walk: Walk | None = None
    """The walk that the user makes."""
    walk_ended = False
    """Whether the user has ended a walk, or a walk of the user has ended, since the last one began."""
    _walks = 0

    @property
    def on_map(self) -> bool:
        """Whether the panel shows a map with squares to walk on."""
        world = None if self.source is None else self.source.world
        return isinstance(self.view, WorldMap) and world is not None and not world.arms

    @property
    def map_shortcuts(self) -> tuple[Shortcut, ...]:
        """The keys of the map, for the footer."""
        if self.painting is not None:
            return _PAINTING
        if self.walk is None:
            return _KEYS if self.on_map else _OF_ARMS
        return _ON_A_WALK[:1] * (not self.walk.over) + _ON_A_WALK[1:] * self.walk.over + _END

    def on_the_map(self, source: PlotData) -> PlotData:
        """`source` with what the user does on the map."""
        if not self.on_map:
            return source
        if self.painting is not None:
            return replace(source, painting=self.painting, world=self.painting.world, repainted=True)
        return source if self.walk is None else replace(source, walk=self.walk, world=self.walk.world)

    async def on_key(self, event: events.Key) -> None:
        """Take the keys that mean something on a map, before the panel does."""
        if isinstance(self.view, WorldMap) and self._takes(event.key):
            event.stop()
            event.prevent_default()

    def _takes(self, key: str) -> bool:
        if self.takes_while_painting(key):
            return True
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
        self.end_painting()
        walk = Walk(world, world.starts[self._walks % len(world.starts)], self._walks)
        self.walk_ended = False
        self._walks += 1
        if best:
            with suppress(ValueError):  # a reward that can be earned for ever
                moves = plan(world, self.source.settings.gamma)
                while not walk.over:
                    walk = walk.on(moves.best(walk.square))
        self._set(walk)

    def begin_painting(self, plain: World, squares: Mapping[str, float | str]) -> None:
        """Leave a walk, and take the brushes."""
        self.walk = None
        super().begin_painting(plain, squares)

    def end_walk(self) -> None:
        """Leave the walk; the map shows the answer under the cursor again."""
        self._set(None)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """On a walk, go to the square beside it that is clicked."""
        at = event.get_content_offset(self)
        if self.walk is None or at is None or not isinstance(self.view, WorldMap):
            return
        clicked = self.view.square_at(self.walk.world, Size(*self.content_size), *at)
        beside = {self.walk.world.moved(self.walk.square, move): move for move in self.walk.world.moves}
        if clicked in beside and clicked != self.walk.square:
            self._go(beside[clicked])

    def _go(self, move: str) -> None:
        assert self.walk is not None
        if self.source is not None and self.source.world is not self.walk.world:
            self.begin_walk()  # repainted: what is left of the walk would be by two sets of rules
        elif not self.walk.over and move in self.walk.world.moves:
            self._set(self.walk.on(move))

    def _set(self, walk: Walk | None) -> None:
        """Show the walk; if it has ended, say so, because a lesson may wait for that."""
        goes_on = self.walk is not None and walk is not None and not walk.over and not self.walk.over
        self.walk = walk
        if goes_on:
            self.redraw()
        else:
            self.put(self.view)  # the keys in the footer change, too
        if walk is None or walk.over:
            self.walk_ended = True
            self.post_message(Perform("walk", "ended"))
