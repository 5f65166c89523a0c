"""When a rehearsed number is clearly another one than that of the run as it is."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

from rlplay.health.finding import Points
from rlplay.health.remedies.measures import Measure

FAR, FEW = 0.6, 3
"""Share of the unchanged run's number by which a mean is off that is clear by itself, and the only one that counts in
fewer than `FEW` updates, or of a number that is `wild`."""
STEADY, AGAINST, SURE = 0.2, 0.1, 2.0
"""The same where the updates agree: at most a tenth of all differences points the other way, and their mean is two
standard errors from 0. The error is that of values around a course that may rise, as the effect of a setting does.

Measured on six sick runs, 2 to 4 seeds of each, gone on with from one snapshot with six seeds, which is chance alone:
of the 30 ordered pairs of each run, 0 to 1 % came out "better" by `FAR`; of a gold score, 4 % by `STEADY`, of a wild
number 7 to 14 % would. A rehearsal has the same prompts and random numbers, so that less of it is chance: with another
beta, the gold score of an update differed by 0.01, with another seed by 0.05.
"""
OF_SHARES = 0.05
"""The least difference of a number that is a share."""


def gain(measured: Measure, ours: Points, theirs: Points) -> int:
    """1 if a number is clearly better than that of the unchanged run, −1 if it is clearly worse, else 0."""
    known = dict(theirs)
    both = [(x, known[n]) for n, x in ours if n in known and math.isfinite(x) and math.isfinite(known[n])]
    if not both:
        return 0
    gains = [x - y if measured.more else y - x for x, y in both]
    mean, whole = fmean(gains), abs(fmean(y for _, y in both))
    if not mean or abs(mean) < (OF_SHARES if measured.share else measured.least):
        return 0
    clear = abs(mean) >= FAR * whole or (
        len(both) >= FEW and not measured.wild and abs(mean) >= STEADY * whole and _agree(gains, mean)
    )
    return (1 if mean > 0 else -1) if clear else 0


def _agree(gains: list[float], mean: float) -> bool:
    """Whether the updates agree that a number differs."""
    against = sum(abs(each) for each in gains if each * mean < 0)
    spread = math.sqrt(sum((b - a) ** 2 for a, b in pairwise(gains)) / (2 * (len(gains) - 1)))
    return against <= AGAINST * sum(map(abs, gains)) and abs(mean) >= SURE * spread / math.sqrt(len(gains))
