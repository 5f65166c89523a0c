"""A check of single updates after which nothing is earned any more: one step that is far too large is enough."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.health.finding import Evidence, Finding
from rlplay.health.policy_checks import CLIP_SHARE, CLIPPED, FAR, too_far
from rlplay.trace.numbers import number, percent

WRENCHED = 0.04
"""Relative change of the weights in an update that is far too large (median over tensors, where all are trained).

GRPO of the bundled model moves them by at most 0.012 while it learns; at rates 10 and 100 times too large by 0.07 and
0.46 to 0.72, and it earns nothing from the second update on.
"""
WHOLE = 0.5
"""Share of the weights that is trained: an adapter begins at 0, so that any step is large beside it."""
AFTER = 4
"""Updates that show that the reward stays away."""


def ruined(run: Evidence) -> Finding | None:
    """An update moved the policy far, and the reward has been lost since; `too_far` has not seen more of them."""
    if run.settings.loss_type != "policy_gradient" or too_far(run):
        return None
    moved = _far(run)
    lost = _lost(run) if moved else None
    far = [(update, how) for update, how in moved if lost and update < lost.since]
    if lost is None or not far:
        return None
    update, how = far[-1]
    logged = dict(run.known("learning_rate")).get(update)
    rate = run.learning_rate if run.stated("learning_rate") or logged is None else f"learning rate {number(logged)}"
    digest = next((each for each in run.digests if each.update == update), None)
    return Finding(
        "step too large",
        "The steps are too large",
        f"Update {update} {how}. Up to it answers earned {number(lost.before)} on average, in the {lost.updates} "
        f"updates from {lost.since} on {number(lost.after)}.",
        f"The {rate} is far too large for this model: one update has destroyed what it could do. What "
        "follows, such as answers that repeat themselves or an entropy that falls or rises, comes from that.",
        "Lower learning_rate to a tenth or less, and begin again: the weights are damaged.",
        ("learning_rate",),
        None if digest is None else digest.places.get("moved") or digest.places.get("longest"),
    )


class Loss(NamedTuple):
    """The mean reward before and after it was lost, the first update that earned less, and how many did."""

    before: float
    after: float
    since: int
    updates: int


def _lost(run: Evidence) -> Loss | None:
    """Since when all updates have earned less than any before, by half a standard deviation on average."""
    points, spread = run.known("reward"), run.known("reward_std")
    values = np.array([x for _, x in points])
    if len(values) <= AFTER:
        return None
    lowest, highest = np.minimum.accumulate(values), np.maximum.accumulate(values[::-1])[::-1]
    ends = np.flatnonzero(highest[1:] < lowest[:-1]) + 1
    for end in ends[ends <= len(values) - AFTER].tolist():
        before, after, since = values[:end], values[end:], points[end][0]
        wide = max((x for n, x in spread if n < since), default=0.0)
        if wide and before.mean() - after.mean() > wide / 2:
            return Loss(float(before.mean()), float(after.mean()), since, len(after))
    return None


def _far(run: Evidence) -> list[tuple[int, str]]:
    """The updates that moved the policy too far, by the best evidence there is of each, and what they did."""
    whole = min((x for _, x in run.known("weights/trained")), default=0.0) >= WHOLE
    said = {n: f"moved the weights by {number(x)} of their norm" for n, x in run.known("weights/step")
            if whole and x > WRENCHED}  # fmt: skip
    said |= {n: f"had {percent(x)} of its tokens clipped" for n, x in run.known(CLIP_SHARE) if x >= CLIPPED}
    said |= {each.update: f"moved {percent(each.shift)} of the probability of what was sampled"
             for each in run.digests if each.shift is not None and each.shift > FAR}  # fmt: skip
    return sorted(said.items())
