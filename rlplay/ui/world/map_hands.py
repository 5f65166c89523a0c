"""What the keys do on a map: other layers."""

from __future__ import annotations

from textual import events
from textual.widget import Widget

from rlplay.ui.format.shortcuts import Shortcut
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.plot.views import View
from rlplay.ui.world.world_map import WorldMap

LAYERS = {"left": -1, "right": 1}
MAP_HELP = """\
**Map** shows a world. `←` and `→` go through its layers, and the legend below the squares explains their marks.
**Chances**: an arm for each move, as long as the policy is likely to make it, to a quarter; the likeliest is bright and
has a head. While all are equally likely, none has. **Values**: large is the value that was learned, V by the critic or
the mean return of the moves made there. After `=` stands the exact value of the same policy, which follows from the
rules of the world without any walk; Δ is the difference. Where Q is learned, its values stand at the four sides.
**Visits**, **change** (of every chance in this update) and **optimal** (the best moves and V*) are the others. On all
of them, footprints show the walk under the cursor, and a frame the square of its move.
"""


class MapHands(Widget):
    """A panel that may show a map: `←` and `→` go through its layers."""

    SHORTCUTS_ON_MAP = (Shortcut(("left", "right"), "layer"), Shortcut(("up", "down"), "metric"))

    view: View
    source: PlotData | None

    def put(self, view: View) -> None:
        """Show another view in this panel."""
        raise NotImplementedError

    async def on_key(self, event: events.Key) -> None:
        """Take the keys that mean something on a map, before the panel does."""
        if isinstance(self.view, WorldMap) and self._takes(event.key):
            event.stop()
            event.prevent_default()

    def _takes(self, key: str) -> bool:
        if key not in LAYERS or not isinstance(self.view, WorldMap):
            return False
        self.put(self.view.turned(LAYERS[key]))
        return True
