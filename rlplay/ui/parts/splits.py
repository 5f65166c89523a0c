"""The panels above the curves, with three borders that the mouse moves."""

from __future__ import annotations

from textual import events
from textual.containers import Horizontal
from textual.widget import Widget

_LEAST_WIDTH, _LEAST_HEIGHT = 24, 5
"""Cells that every panel keeps, whatever is dragged."""
_LEAST_NUMBERS = 16
"""Cells that the numbers of the answers keep."""


class Splits(Horizontal):
    """Dragging the border before `beside` changes its width, dragging the lower border the height of `below`.

    Inside the frame of the answers, dragging the last column of `numbers` changes their width. Another size of the
    terminal brings back the sizes of the style sheet.
    """

    def __init__(self, numbers: Widget, beside: Widget, below: Widget, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._numbers = numbers
        self._beside = beside
        self._below = below
        self._dragged: Widget | None = None
        self.moved = False
        """Whether the mouse has moved a border since its button went down: then that was no click."""

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of a border."""
        self.moved, self._dragged = False, self._border(event.screen_x, event.screen_y)
        if self._dragged is not None:
            self.capture_mouse()

    def _border(self, x: int, y: int) -> Widget | None:
        """The panel whose size the border at this place changes."""
        side = self._beside.region
        if side.area and side.x > self.region.x and x in (side.x - 1, side.x) and side.y < y < side.bottom - 1:
            return self._beside
        left = self._numbers.region
        if left.area and x == left.right - 1 and left.y <= y < left.bottom - 1:
            return self._numbers
        return self._below if self._below.region.area and y == self.region.bottom - 1 else None

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Move the border to the mouse."""
        panel = self._dragged
        if panel is None:
            return
        self.moved = True
        if panel is self._below:
            most = self.region.height + panel.region.height - _LEAST_HEIGHT
            panel.styles.height = max(_LEAST_HEIGHT, min(panel.region.bottom - event.screen_y - 1, most))
        elif panel is self._numbers:
            most = (self._beside.region.x or self.region.right) - self.region.x - _LEAST_WIDTH
            panel.styles.width = max(_LEAST_NUMBERS, min(event.screen_x - panel.region.x + 1, most))
        else:
            most = self.region.width - _LEAST_WIDTH
            panel.styles.width = max(_LEAST_WIDTH, min(panel.region.right - event.screen_x, most))

    def on_mouse_up(self) -> None:
        """Let go of the border."""
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()

    def reset(self) -> None:
        """Bring back the sizes of the style sheet."""
        for panel in (self._numbers, self._beside):
            panel.styles.inline.clear_rule("width")
        self._below.styles.inline.clear_rule("height")
        self.refresh(layout=True)
