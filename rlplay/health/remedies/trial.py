"""From a finding to what an engine is asked: what to try, and from where."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlplay.health.collapse_checks import drop
from rlplay.health.finding import Evidence, Finding, Problem
from rlplay.health.policy_checks import FAR
from rlplay.health.remedies.measures import measure
from rlplay.health.remedies.remedy import Remedy, Trial, Untried
from rlplay.health.remedies.settings_tried import UNTRIED, remedies
from rlplay.health.run_kind import REWARDED

UPDATES = 5
"""Updates of a rehearsal: as many as most checks need to see their problem."""
_DAMAGES: frozenset[Problem] = frozenset({
    "not finite", "step too large", "repetition", "memorised", "entropy", "entropy rises", "kl", "collapse", "spike",
    "overfit", "displaced", "gamed", "mismatch", "sampler",
})  # fmt: skip
"""Problems that leave a policy from which no setting brings it back soon: the rehearsal begins before them."""


def trial(run: Evidence, found: Finding, updates: int = UPDATES, own: Sequence[Remedy] = ()) -> Trial | Untried:
    """What to rehearse for a finding; with `own` remedies, those instead of the usual ones."""
    tried = tuple(own) or remedies(run, found)
    if not tried:
        return Untried(found, untried(found))
    since, why = _since(run, found)
    return Trial(found, since, updates, why, tried)


def untried(found: Finding) -> str:
    """Why nothing can be tried for a finding."""
    if found.name in UNTRIED:
        return UNTRIED[found.name]
    if not found.settings:
        return "what is wrong here is no setting of training"
    if "reward_weights" in found.settings:
        return "the run has no gold score and no other part of the reward that could be paid instead"
    return "the run has the settings already that would be tried"


def first_to_try(run: Evidence, found: Sequence[Finding], updates: int = UPDATES) -> Trial | Untried | None:
    """The gravest finding with something to try; if there is none, why not for the gravest; None without findings."""
    plans = [trial(run, each, updates) for each in found]
    return next((each for each in plans if isinstance(each, Trial)), plans[0] if plans else None)


def _since(run: Evidence, found: Finding) -> tuple[int, str]:
    """The end of the update from which to rehearse, and why from there."""
    begins = max(run.first - 1, 0)
    before = _before(run, found) if found.name in _DAMAGES else None
    if before is None or before >= run.last:
        return run.last, f"from update {run.last}, where the run is"
    if before < run.made_before:
        return run.made_before, f"from update {run.made_before}, the checkpoint: there are no earlier weights"
    since = max(before, begins)
    if since == begins:
        return since, "from the start, as the policy is damaged since" if not begins else "from the start of the stage"
    return since, f"from update {since}, before it began: later weights are damaged"


def _before(run: Evidence, found: Finding) -> int | None:
    """The last update before its number went bad; None if nothing says when."""
    points = [(n, x) for n, x in measure(run, found).series(run) if math.isfinite(x)]
    if found.name == "collapse":
        lost = drop(run)
        return None if lost is None else lost.at
    if not points:
        return None
    first, worst = points[0][1], points[-1][1]
    limit = FAR if run.kind in REWARDED else first
    match found.name:
        case "memorised":
            before = 0
        case "spike":
            before = max(points, key=lambda point: point[1])[0] - 1
        case "overfit":
            before = min(points, key=lambda point: point[1])[0]
        case "not finite":  # the step before it broke the weights
            before = next((n for n, x in points if x), points[-1][0]) - 2
        case "step too large":
            before = next((n for n, x in points if x > limit), points[0][0]) - 1
        case _:
            before = next((n for n, x in points if abs(x - first) > abs(worst - first) / 2), points[0][0]) - 1
    return before
