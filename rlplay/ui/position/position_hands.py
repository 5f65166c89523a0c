"""What keys and mouse do on a plot by position: a cursor that leads to tokens, and zoom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from textual import events
from textual.widget import Widget

from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.parts.panel_messages import CursorMoved
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.view import View
from rlplay.ui.position.by_position import ByPosition, drawn, fitted, of_update
from rlplay.ui.position.dots import Plot
from rlplay.ui.position.places import Places

_SHORTCUTS = (
    Shortcut(("left", "right"), "position"), Shortcut(("enter",), "its tokens"), Shortcut(("plus", "minus"), "zoom"),
    Shortcut(("c",), "statistic"), Shortcut(("L",), "log", False), Shortcut(("up", "down"), "metric", False),
)  # fmt: skip
POSITION_HELP = """\
**By position** (`Q`) has a dot for each token of the update on the screen: across, its position in its answer; up, the
statistic that colours the tokens (`c`, `C`). While the colours are automatic, it shows the difference to the sampler
where the sampler is not the policy, and the entropy where it is. Dots above the neutral value are blue, those below it
orange. The line is the median of the tokens at a position, the shade has the middle 80 % of them; both need 5 tokens.
Where positions share a column, they are counted together. `←` and `→` move a cursor, whose numbers are below, and
`enter` goes to its tokens in the answers, the one farthest from the median first; a click goes to the nearest. `◉` is
the token under the cursor there. `+` and `-`, or the wheel, zoom; `esc` shows all positions again. `L` draws the sizes
of the values on a logarithmic scale.

"""


class PositionHands(Widget):
    """A panel that may show a plot by position."""

    view: View
    source: PlotData | None
    log_scale: bool

    @property
    def help_first(self) -> str:
        """The part of the panel's help that is about what it shows now, if that is a plot by position."""
        return POSITION_HELP if isinstance(self.view, ByPosition) else ""

    @property
    def position_shortcuts(self) -> tuple[Shortcut, ...]:
        """The keys of the plot, for the footer."""
        return _SHORTCUTS

    def put(self, view: View) -> None:
        """Show another view in this panel."""
        raise NotImplementedError

    async def on_key(self, event: events.Key) -> None:
        """Take the keys that mean something here, before the panel does."""
        found = self._plotted()
        if found is not None and self._take_position_key(event.key, *found):
            event.stop()
            event.prevent_default()

    def on_click(self, event: events.Click) -> None:
        """Go to the token nearest to the mouse."""
        found, at = self._plotted(), event.get_content_offset(self)
        if found is None or at is None or event.y == 0:
            return
        token = fitted(self._fitted_here(), found[1], found[0], self.log_scale).nearest(at.x, at.y)
        if token is not None:
            self.put(replace(found[0], at=int(found[1].position[token]), rank=1))
            self._lead_to(found[1], token)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in."""
        self._wheel(event, "plus")

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out."""
        self._wheel(event, "minus")

    def _wheel(self, event: events.MouseEvent, key: str) -> None:
        found = self._plotted()
        if found is not None:
            event.stop()
            self._take_position_key(key, *found)

    def _plotted(self) -> tuple[ByPosition, Places] | None:
        if not isinstance(self.view, ByPosition) or self.source is None:
            return None
        tokens = drawn(self.source)[1]
        return None if tokens is None else (self.view, tokens)

    def _fitted_here(self) -> PlotData:
        assert self.source is not None
        return replace(self.source, columns=self.content_size.width, lines=self.content_size.height)

    def _take_position_key(self, key: str, view: ByPosition, found: Places) -> bool:
        plot = fitted(self._fitted_here(), found, view, self.log_scale)
        match key:
            case "left" | "right":
                self.put(view.moved(1 if key == "right" else -1, found, plot))
            case "home" | "end":
                first, last = view.window(found)
                self.put(replace(view, at=first if key == "home" else last, rank=0))
            case "plus" | "minus":
                self.put(view.zoomed(key == "plus", found))
            case "enter":
                self._enter(view, found, plot)
            case "escape" if view.window(found) != (0, found.length - 1):
                self.put(replace(view, first=0, last=-1))
            case "escape" if view.at is not None:
                self.put(ByPosition())
            case _:
                return False
        return True

    def _enter(self, view: ByPosition, found: Places, plot: Plot) -> None:
        """Go to the next of the tokens at the cursor; without a cursor, of all in view."""
        here = view.window(found) if view.at is None else plot.positions(view.at)
        order = found.farthest(*here)
        if len(order):
            self.put(replace(view, rank=view.rank + 1))
            self._lead_to(found, int(order[view.rank % len(order)]))

    def _lead_to(self, found: Places, token: int) -> None:
        assert self.source is not None
        update = self.source.shown
        if update is None or update.sampled is None or update is not of_update(self.source):
            return  # the tokens of another update are on the screen
        flat = int(found.index[token])
        answer = int(np.searchsorted(update.sampled.offsets, flat, side="right")) - 1
        self.post_message(CursorMoved(answer, flat - int(update.sampled.offsets[answer])))
