"""When a rehearsed number is clearly another one than that of the run as it is."""

from __future__ import annotations

import math
from statistics import fmean, stdev

from rlplay.health.finding import Points
from rlplay.health.remedies.measures import Measure

SHARE, FEW, ALONE = 0.2, 3, 0.5
"""Share of the unchanged run's number by which the mean of the differences has to be off; with fewer than `FEW`
updates, half of it."""
SURE = 2.5
"""Standard errors of that mean, by how the differences vary from update to update, or how these vary as shares of the
larger number: a number that falls from 90 % to 5 % differs most at first, and may differ by nine tenths throughout.

Of 40,000 made-up pairs of five numbers, both drawn alike (normal, log-normal, Beta, falling), 2 to 3 % come out
"better".
No difference may point the other way, either. Measured on six sick runs, 2 to 4 seeds of each: rehearsed from the same
snapshot with six other seeds, which is only chance, 0 to 2 % of the 30 ordered pairs of each came out "better", and 3 %
where there were but two evaluations. A rehearsal has the same prompts and random numbers, so that less of it is chance.
"""
OF_SHARES = 0.05
"""The least difference of a number that is a share."""


def gain(measured: Measure, ours: Points, theirs: Points) -> int:
    """1 if a number is clearly better than that of the unchanged run, −1 if it is clearly worse, else 0."""
    known = dict(theirs)
    both = [(x, known[n]) for n, x in ours if n in known and math.isfinite(x) and math.isfinite(known[n])]
    if not both:
        return 0
    sign = 1 if measured.more else -1
    gains = [sign * (x - y) for x, y in both]
    mean, least = fmean(gains), (SHARE if len(both) >= FEW else ALONE) * abs(fmean(y for _, y in both))
    least = max(least, OF_SHARES if measured.share else measured.least)
    shares = [gained / (max(abs(x), abs(y)) or 1.0) for gained, (x, y) in zip(gains, both, strict=True)]
    mixed = min(gains) < 0 < max(gains)
    agree = len(both) < FEW or _agree(gains) or _agree(shares)
    return 0 if not mean or mixed or abs(mean) < least or not agree else 1 if mean > 0 else -1


def _agree(differences: list[float]) -> bool:
    return abs(fmean(differences)) >= SURE * stdev(differences) / math.sqrt(len(differences))
