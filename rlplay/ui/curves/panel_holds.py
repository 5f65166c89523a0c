"""What a panel of curves shows, compared with what is asked for."""

from __future__ import annotations

from rlplay.trace.metrics import pair_of
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.curves.first_views import NAMED, view_of
from rlplay.ui.plot.curve_view import CurveView
from rlplay.ui.plot.view import View
from rlplay.ui.world.world_map import MAPS, WorldMap


def is_layer(view: View) -> bool:
    """Whether the view is a layer of a map to which the user has turned."""
    return isinstance(view, WorldMap) and view not in MAPS


def is_part(view: View, whole: View) -> bool:
    """Whether `whole` shows every metric of `view`, apart from held-out values."""
    return bool(view.metrics) and {name.removeprefix("eval_") for name in view.metrics} <= {*whole.metrics}


def has(panel: CurvePanel, metric: str) -> bool:
    """Whether the panel shows a view of `NAMED`, or the curve of a metric."""
    if metric in NAMED or pair_of(metric) is not None:
        return panel.view == view_of(metric)
    return isinstance(panel.view, CurveView) and metric in panel.view.metrics
