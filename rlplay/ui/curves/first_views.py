"""The views with which the curve panels start, by algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from rlplay.algorithms.settings import Settings
from rlplay.ui.held_out.learning_map import LearningMap
from rlplay.ui.plot.catalogue import (
    ACTION_VALUES,
    IMITATION,
    KL,
    LENGTH,
    PAIRS,
    REWARD,
    SCORES,
    STEP_KL,
    beside_sampler,
)
from rlplay.ui.plot.curve_view import CurveView, single
from rlplay.ui.plot.tree import AnswerTree
from rlplay.ui.plot.trpo_search import Search
from rlplay.ui.plot.two_lines import TwoLines, two_lines
from rlplay.ui.plot.view import Detailed, View
from rlplay.ui.position.by_position import ByPosition
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.ratio_histogram import Ratios
from rlplay.ui.river.belief_river import River
from rlplay.ui.world.world_map import MAPS, WorldMap
from rlplay.worlds.world import World

DETAILED: dict[str, Detailed] = {
    "belief": River(),
    "tree": AnswerTree(),
    "pull": PullMap(),
    "learning": LearningMap(),
    "position": ByPosition(),
}
"""The views with a verb of their own."""
NAMED: dict[str, View] = {
    **DETAILED,
    "map": MAPS[0],
    "value map": WorldMap("values"),
    "optimal map": MAPS[2],
}
"""The views that can be asked for by name, with a verb or as a curve; they take the place of any curve."""
LARGE: dict[str, View] = {"map": MAPS[0], "tree": AnswerTree(), "river": River(), "position": ByPosition()}
"""The stages in which one view has most of the room."""
ROW = 4
"""Views below the answers; `further` ones have room on a large screen only."""
OVERVIEW: tuple[View, ...] = (REWARD, KL, Ratios(), LENGTH)
TELLING: tuple[CurveView, ...] = (
    REWARD, *PAIRS[1:3], *SCORES[1:3], KL, LENGTH, single("grad_norm"), single("loss"), single("mean_token_accuracy"),
    single("entropy"), single("clip_ratio/region_mean"), single("learning_rate"),
)  # fmt: skip
"""The curves to look at first where a run has nothing else, whatever it learns from."""
TRUST_REGION: tuple[View, ...] = (REWARD, STEP_KL, Search(), LENGTH)


def overview(
    settings: Settings, world: World | None = None, panels: Sequence[str] = (), only: Sequence[str] = (),
    mismatch: str = "",
) -> tuple[View, ...]:  # fmt: skip
    """The views for these settings; a world has its map in the second panel, and further maps after the fourth.

    Where an update learns from rewards, the scenario's `panels` come first: metrics, pairs of them, names of `NAMED`.
    A run that has the metrics `only` and no answers has views of these. The metric `mismatch` of a sampler that is not
    the policy comes before the KL to the reference, which is then a sparkline.
    """
    if only:
        return (*of_metrics(only), *OVERVIEW)
    views = _of_algorithm(settings)
    if mismatch and settings.rewarded:
        views = tuple(beside_sampler(mismatch) if view in (KL, STEP_KL) else view for view in views)
    if panels and settings.rewarded:
        chosen = tuple(_named(name, views) for name in panels)
        paired = {name for view in chosen if isinstance(view, TwoLines) for name in view.metrics}
        views = (*chosen, *(view for view in views if view not in chosen and not paired & {*view.metrics[:1]}))
    if world is None:
        return views
    first, others = views[0], views[1:]
    return first, MAPS[0], others[-1], others[0], *others[1:-1], *MAPS[1:]


def of_metrics(names: Sequence[str]) -> list[View]:
    """At most `ROW` views of a run that has these metrics: those that tell most, then others in order."""
    views, shown = list[View](), set[str]()
    for view in TELLING:
        if view.metrics[0] in names and view.metrics[0] not in shown:
            views.append(view)
            shown |= {*view.metrics}
    others = [name for name in names if name not in shown and not name.startswith("eval_")]
    return [*views, *map(single, others)][:ROW]


def further(views: Sequence[View], settings: Settings) -> tuple[View, ...]:
    """The views after the first four of the overview `views`: maps, then answers, then curves."""
    kind = settings.kind
    curves = [view for view in views[ROW:] if view not in MAPS]
    maps = [view for view in views[ROW:] if view in MAPS]
    if settings.rewarded:
        return (*maps, AnswerTree(), LearningMap(), PullMap(), *curves)
    shown = {name for view in views for name in view.metrics}
    names = (
        ("label_accuracy", "frac_pairs_tied") if kind == "reward model" else ("grad_norm", "entropy", "learning_rate")
    )
    return (*maps, LearningMap(), *(single(name) for name in names if name not in shown), *curves)


def small(views: Sequence[View], large: View) -> tuple[View, ...]:
    """What stands beside the `large` view: the curves of the overview `views`."""
    return tuple(view for view in views if view != large and view.of_run)


def _named(name: str, views: Sequence[View]) -> View:
    """The view of a name: of a metric, the one among `views` that begins with it, or a new one."""
    shown = next((view for view in views if view.metrics[:1] == (name,)), None)
    return shown or view_of(name)


def view_of(name: str) -> View:
    """The view of a name: one of `NAMED`, two metrics, or one."""
    return NAMED.get(name) or two_lines(name) or single(name)


def _of_algorithm(settings: Settings) -> tuple[View, ...]:
    kind = settings.kind
    if kind == "action values":
        return ACTION_VALUES
    if settings.rewarded:
        return TRUST_REGION if settings.surrogate_row.trust_region else OVERVIEW
    return IMITATION if kind == "imitation" else SCORES if kind == "reward model" else PAIRS
