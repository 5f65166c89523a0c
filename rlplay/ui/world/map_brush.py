"""Painting the squares of a map: with the mouse, or with a cursor and the numbers of the brushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.plot.picture import Size
from rlplay.ui.plot.view import View
from rlplay.ui.world.world_map import WorldMap
from rlplay.worlds.world import DIRECTIONS, World, place, square_name

if TYPE_CHECKING:
    from rlplay.worlds.painting import Painting

MOVES = {"up": "↑", "right": "→", "down": "↓", "left": "←"}


class MapBrush(Widget):
    """A panel whose map can be painted; every stroke becomes the setting `squares`, which the engine takes live."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"brush({n})", "paint", show=False, id=f"map.brush_{n}") for n in range(7)),
        Binding("plus", "dearer(1)", "more reward", show=False, id="map.more"),
        Binding("minus", "dearer(-1)", "less reward", show=False, id="map.less"),
        Binding("z", "unpaint", "undo: the last stroke", show=False, id="map.unpaint"),
    ]

    view: View
    painting: Painting | None = None
    """What the user paints."""
    painted = False
    """Whether a stroke has been made since painting began."""
    _dragged: tuple[Painting, list[str]] | None = None
    _before: View | None = None
    _sent: Mapping[str, float | str]

    def put(self, view: View) -> None:
        """Show another view in this panel."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the view again."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The brushes have their keys while the user paints; otherwise these are left to others."""
        if action in ("brush", "dearer", "unpaint"):
            undoes = self.painting is not None and bool(self.painting.earlier)
            return undoes if action == "unpaint" else self.painting is not None
        return super().check_action(action, parameters)

    def begin_painting(self, plain: World, squares: Mapping[str, float | str]) -> None:
        """Paint over the world `plain`, which has these `squares` already; the best moves follow every stroke."""
        from rlplay.worlds.painting import Painting

        if self.painting is None:
            self._before = self.view
        self.painted = False
        self._sent = dict(squares)
        self.painting = Painting(plain, self._sent, plain.starts[0])
        self.put(WorldMap("optimal"))

    def end_painting(self) -> None:
        """Leave the brushes; what is painted stays."""
        self.painting = self._dragged = None
        if self._before is not None:
            self.put(self._before)
            self._before = None

    def action_brush(self, number: int) -> None:
        """Take a brush and paint the square under the cursor."""
        if self.painting is not None:
            self._stroke(replace(self.painting, brush=number), [self.painting.cursor])

    def action_dearer(self, steps: int) -> None:
        """Change the reward that the brush paints."""
        from rlplay.worlds.painting import REWARD, STEP

        if self.painting is not None:
            self._show(replace(self.painting, brush=REWARD, reward=self.painting.reward + steps * STEP))

    def action_unpaint(self) -> None:
        """Take the last stroke back."""
        if self.painting is not None:
            self._show(self.painting.undone())
            self._send()

    def takes_while_painting(self, key: str) -> bool:
        """Whether a key did something to the painting."""
        if self.painting is None:
            return False
        if key in MOVES:
            self._move(MOVES[key])
        elif key == "enter":
            self._stroke(self.painting, [self.painting.cursor])
        elif key == "escape":
            self.end_painting()
        else:
            return False
        return True

    def _move(self, move: str) -> None:
        assert self.painting is not None
        world, (row, column), (down, right) = self.painting.plain, place(self.painting.cursor), DIRECTIONS[move]
        row = min(max(row + down, 0), len(world.map) - 1)
        column = min(max(column + right, 0), len(world.map[0]) - 1)
        self._show(replace(self.painting, cursor=square_name(row, column)))

    def _stroke(self, painting: Painting, over: list[str]) -> None:
        self._show(painting.stroke(over))
        self._send()

    def _show(self, painting: Painting) -> None:
        self.painting = painting
        self.redraw()

    def _send(self) -> None:
        """Let the engine take the squares as they are painted now."""
        assert self.painting is not None
        if self.painting.squares != self._sent:
            self._sent = dict(self.painting.squares)
            self.post_message(Perform("set", {"squares": self._sent}))
            self.painted = True
            self.post_message(Perform("paint", "painted"))

    # The mouse

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take the brush under the mouse, or begin a stroke."""
        at = event.get_content_offset(self)
        if at is None or self.painting is None or not isinstance(self.view, WorldMap):
            return
        size = Size(*self.content_size)
        if (square := self.view.square_at(self.painting.world, size, *at)) is not None:
            self._dragged = replace(self.painting, cursor=square), [square]
            self.capture_mouse()
            self._show(self._dragged[0].stroke([square]))
        elif (number := self.view.brush_at(self.painting, size, *at)) is not None:
            self._show(replace(self.painting, brush=number))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Go on with the stroke."""
        if self._dragged is None or not isinstance(self.view, WorldMap):
            return
        inner = self.content_region.offset - self.region.offset
        begun, over = self._dragged
        at = event.x - inner.x, event.y - inner.y
        square = self.view.square_at(begun.world, Size(*self.content_size), *at)
        if square is not None and square != over[-1]:
            over.append(square)
            self._show(replace(begun, cursor=square).stroke(over))

    def on_mouse_up(self) -> None:
        """End the stroke."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()
            self._send()
