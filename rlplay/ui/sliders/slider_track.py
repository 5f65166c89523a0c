"""The track of a slider: a line with a handle that keys and the mouse move."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from rlplay.trace.numbers import compact, real_minus
from rlplay.ui.sliders.quantity import Quantity


class SliderTrack(Widget):
    """Shows the value of a quantity between its ends; where it began is marked."""

    DEFAULT_CSS = "SliderTrack { height: 2; margin: 0 1; }"

    class Dragged(Message):
        """The handle was dragged to this value."""

        def __init__(self, value: float) -> None:
            super().__init__()
            self.value = value

    def __init__(self, quantity: Quantity) -> None:
        super().__init__()
        self._quantity = quantity
        self._dragging = False
        self.value = quantity.begins

    def move(self, value: float) -> None:
        """Put the handle at `value`."""
        self.value = value
        self.refresh()

    def column(self, value: float) -> int:
        """The cell of a value."""
        ends = self._quantity.high - self._quantity.low
        return round((value - self._quantity.low) / ends * (max(self.content_size.width, 2) - 1))

    def render(self) -> Content:
        width, begins, here = self.content_size.width, self.column(self._quantity.begins), self.column(self.value)
        rule = ["─"] * width
        rule[0], rule[-1], rule[begins] = "├", "┤", "┼"
        low, high = min(begins, here), max(begins, here)
        between = "━" * (high - low)
        line = Content.assemble(
            ("".join(rule[:low]), "$text-muted"),
            (between if begins < here else "", "$foreground"),
            ("●", "bold $accent"),
            (between if begins > here else "", "$foreground"),
            ("".join(rule[high + 1 :]), "$text-muted"),
        )
        return Content("\n").join([line, Content.styled(self._ends(width, begins), "$text-muted")])

    def _ends(self, width: int, begins: int) -> str:
        words = [" "] * width
        q = self._quantity
        for value, at in ((q.low, 0), (q.high, width), (q.begins, begins)):
            text = real_minus(compact(value))
            begin = min(max(at - len(text) // 2, 0), width - len(text))
            if all(each == " " for each in words[max(begin - 1, 0) : begin + len(text) + 1]):
                words[begin : begin + len(text)] = text
        return "".join(words)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take the handle."""
        self._dragging = True
        self.capture_mouse()
        self._drag(event)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Let it follow."""
        if self._dragging:
            self._drag(event)

    def on_mouse_up(self) -> None:
        """Let it go."""
        self._dragging = False
        self.release_mouse()

    def _drag(self, event: events.MouseEvent) -> None:
        share = event.x / max(self.content_size.width - 1, 1)
        q = self._quantity
        self.post_message(self.Dragged(q.snapped(q.low + min(max(share, 0.0), 1.0) * (q.high - q.low))))
