"""Choosing a box of the pull map with the mouse."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.widget import Widget

from rlplay.ui.parts.panel_messages import Perform
from rlplay.ui.plot.picture import Size, lit
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import View
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.pull_plane import Corner
from rlplay.ui.pull.ratio_histogram import shows_map


class BoxDrag(Widget):
    """A panel that may show the pull map: dragging over it finds the tokens in the box."""

    view: View
    source: PlotData | None
    _corners: tuple[Corner, Corner] | None = None

    @property
    def shows_map(self) -> bool:
        """Whether the panel shows the pull map."""
        return self.source is not None and shows_map(self.view, self.source)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin a box."""
        at = event.get_content_offset(self)
        if at is not None and self.shows_map:
            self._corners = at, at
            self.capture_mouse()

    def on_mouse_up(self) -> None:
        """Find the tokens in the box, unless the mouse has not moved."""
        corners, self._corners = self._corners, None
        if corners is None:
            return
        self.release_mouse()
        self.refresh()
        if corners[0] != corners[1] and self.source is not None:
            self.post_message(Perform("find", PullMap().boxed(self.source, Size(*self.content_size), *corners)))

    def drag(self, event: events.MouseMove) -> None:
        """Draw the box up to the mouse."""
        if self._corners is not None:
            inner = self.content_region.offset - self.region.offset
            self._corners = self._corners[0], (event.x - inner.x, event.y - inner.y)
            self.refresh()

    def with_box(self, content: Content, width: int) -> Content:
        """The picture's text with the box that is being drawn."""
        if self._corners is None:
            return content
        columns, lines = (
            range(max(min(ends), 0), min(max(ends), most - 1) + 1)
            for ends, most in zip(zip(*self._corners, strict=True), (width, self.content_size.height - 1), strict=True)
        )
        return lit(content, width, columns, lines)
