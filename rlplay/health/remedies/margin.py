"""When a rehearsed number is clearly another one than that of the run as it is."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

from rlplay.health.finding import Points
from rlplay.health.remedies.measures import Measure

FAR, FEW = 0.6, 3
"""Share of the larger of both means by which they differ that is clear if most updates point there and hardly anything
points the other way; the only one that counts in fewer than `FEW` updates. Where an update of 64 answers has 0.4 to 2
right ones, 6 to 7 % of 1,000 such pairs are better so by chance; without the second condition it would be 7 to 12 %."""
LEAPT = 0.5
"""The same for the largest values of a number that is `wild`: 12 of 360 such pairs are better so by chance."""
STEADY, AGAINST, SURE = 0.2, 0.1, 2.5
"""Share of the unchanged run's mean that is clear where the updates agree: at most a tenth of all differences points
the other way, and their mean is 2.5 standard errors from 0, or that of the differences as shares of the larger number:
one that falls from 90 % to 5 % differs most at first, and may differ by nine tenths throughout. The error is that of
values around a course that may rise, as the effect of a setting does.

Measured on six sick runs, 2 to 4 seeds of each, gone on with from one snapshot with six seeds, which is chance alone:
of the 30 ordered pairs of each run, 0 to 2 % came out "better". Of 4,000 made-up pairs of five numbers, both drawn
alike, 3 to 6 % do (normal, log-normal with a deviation of half, Beta, falling). A rehearsal has the same prompts and
random numbers, so that less of it is chance: with another beta, the gold score of an update differed by 0.01, with
another seed by 0.05.
"""
OF_SHARES = 0.05
"""The least difference of a number that is a share."""


def gain(measured: Measure, ours: Points, theirs: Points) -> int:
    """1 if a number is clearly better than that of the unchanged run, −1 if it is clearly worse, else 0."""
    known = dict(theirs)
    both = [(x, known[n]) for n, x in ours if n in known and math.isfinite(x) and math.isfinite(known[n])]
    if not both:
        return 0
    if measured.wild:
        own, other = (max(values) for values in zip(*both, strict=True))
        return (other > own) - (other < own) if abs(own - other) >= LEAPT * max(own, other) else 0
    gains = [x - y if measured.more else y - x for x, y in both]
    mean, whole = fmean(gains), abs(fmean(y for _, y in both))
    larger = max(whole, abs(fmean(x for x, _ in both)))
    if not mean or abs(mean) < (OF_SHARES if measured.share else measured.least):
        return 0
    shares = [gained / (max(abs(x), abs(y)) or 1.0) for gained, (x, y) in zip(gains, both, strict=True)]
    steady = len(both) >= FEW and (_agree(gains) or _agree(shares))
    most = 2 * sum(each * mean > 0 for each in gains) > len(gains) and _one_way(gains)
    far = most and abs(mean) >= FAR * larger
    clear = far or (steady and abs(mean) >= STEADY * whole)
    return (1 if mean > 0 else -1) if clear else 0


def _agree(gains: list[float]) -> bool:
    """Whether the updates agree that a number differs."""
    mean = fmean(gains)
    spread = math.sqrt(sum((b - a) ** 2 for a, b in pairwise(gains)) / (2 * (len(gains) - 1)))
    return _one_way(gains) and abs(mean) >= SURE * spread / math.sqrt(len(gains))


def _one_way(gains: list[float]) -> bool:
    """Whether hardly anything points against their sum."""
    whole = sum(gains)
    return sum(abs(each) for each in gains if each * whole < 0) <= AGAINST * sum(map(abs, gains))
