"""Whether a metric rises or falls: a straight line through its last updates, with its statistical uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlplay.health.finding import Evidence, Points
from rlplay.health.run_kind import REWARDED
from rlplay.trace.numbers import number

WINDOW = 20
"""Updates to fit the line to; with fewer, hardly any slope of a reward is distinguishable from chance."""
FEWEST = 5

BESIDE, OUTLYING = 3, 8.0
"""Neighbours on each side of a value, and the robust deviations from their median at which it is an outlier."""

BEGIN, SURE = 2, 3.0
"""Updates that are the start of a run that rises quickly, and how many standard errors are beyond chance there."""
SOLVED = 0.8
"""Share of the way from the lowest mean reward to the best answer's, from which most prompts are solved: a reward that
stays there, and groups whose answers all earn the same, are no problem."""
ARRIVED = 3
"""Updates at the ceiling after which a run has arrived there, even if its last WINDOW began lower."""
NEAR = 0.9
"""At this share of the way from the lowest mean reward to the best answer's reward, the reward is at its ceiling."""


@dataclass(frozen=True)
class Trend:
    """The slope per update by least squares, and the half-width of its 95 % interval.

    The interval assumes independent deviations from the line: each update draws new prompts.
    """

    slope: float
    margin: float
    count: int
    first: float
    last: float
    ends: int
    """Means of the first and of the last `ends` of those updates: a line's own ends can lie where no value ever was."""

    @property
    def rises(self) -> bool:
        """Whether it rises beyond chance."""
        return self.slope > self.margin

    @property
    def falls(self) -> bool:
        """Whether it falls beyond chance."""
        return self.slope < -self.margin

    @property
    def text(self) -> str:
        """As text: "+0.0012 ± 0.0031 per update over the last 20 (95 %)"."""
        sign = "+" if self.slope > 0 else ""
        return f"{sign}{number(self.slope)} ± {number(self.margin)} per update over the last {self.count} (95 %)"


def trend(points: Points, fewest: int = FEWEST) -> Trend | None:
    """The trend over the last WINDOW points; None if there are fewer than `fewest`."""
    known = _newest(points)
    if len(known) < max(3, fewest):
        return None
    x, y = np.array(known, dtype=np.float64).T
    ends = max(1, len(known) // 4)
    first, last = float(y[:ends].mean()), float(y[-ends:].mean())
    if np.ptp(y) == 0:  # otherwise rounding would yield a slope
        return Trend(0.0, 0.0, len(known), first, last, ends)
    y, x = y - y.mean(), x - x.mean()
    slope = float(x @ y / (x @ x))
    left = y - slope * x
    error = math.sqrt(float(left @ left) / (len(known) - 2) / float(x @ x))
    return Trend(slope, _t95(len(known) - 2) * error, len(known), first, last, ends)


def _newest(points: Points) -> Points:
    """The last WINDOW points that are numbers."""
    last = [point for point in points[-WINDOW:] if math.isfinite(point[1])]
    if len(last) < min(WINDOW, len(points)):
        last = [point for point in points if math.isfinite(point[1])][-WINDOW:]
    return last


def without_outliers(values: Sequence[float]) -> list[float]:
    """The values, each that stands out from its neighbours replaced by their median.

    It stands out if it is `OUTLYING` robust deviations away from the median of the seven around it; where more than
    half of the values equal that median, none does.
    """
    x = np.array(values, dtype=np.float64)
    if len(x) < 2 * BESIDE + 1:
        return list(values)
    near = np.lib.stride_tricks.sliding_window_view(np.pad(x, BESIDE, "symmetric"), 2 * BESIDE + 1)
    middle = np.median(near, axis=1)
    usual = 1.4826 * float(np.median(np.abs(x - middle)))
    kept: list[float] = np.where((np.abs(x - middle) > OUTLYING * usual) & (usual > 0), middle, x).tolist()
    return kept


def steady_trend(points: Points, fewest: int = FEWEST) -> Trend | None:
    """The trend without single values that stand out."""
    known = _newest(points)
    values = without_outliers([value for _, value in known])
    return trend([(n, value) for (n, _), value in zip(known, values, strict=True)], fewest)


def _t95(freedom: int) -> float:
    """Student's t, 97.5 %: so many standard errors are half of a 95 % interval. Off by at most 0.05 from 4 on."""
    return 1.96 + 2.37 / freedom + 2.8 / freedom**2


def learns(run: Evidence, sure: float = 1.0) -> bool:
    """Whether what is trained becomes better, by `sure` times what chance could do, or is as good as it can be."""
    rewarded = run.kind in REWARDED
    found = trend(run.series("reward" if rewarded else "loss"))
    gain = 0.0 if found is None else found.slope if rewarded else -found.slope
    return bool(rewarded and ceiling(run)) or (found is not None and gain > sure * found.margin)


def risen(run: Evidence) -> bool:
    """Whether the reward rises, or is higher than at the start, beyond chance."""
    found, means = trend(run.known("reward")), [x for _, x in run.known("reward")]
    if found is not None and found.rises:
        return True
    for begin in (BEGIN, FEWEST):  # a quick rise is over within the first five
        first, last = np.array(means[:begin]), np.array(means[begin:][-WINDOW:])
        if len(last) >= 2 * FEWEST:
            noise = float(last.std(ddof=1)) * math.sqrt(1 / len(first) + 1 / len(last))
            if float(last.mean() - first.mean()) > SURE * noise:
                return True
    return False


def solved(run: Evidence) -> str:
    """The mean reward and the best one, if the reward has come most of the way to it, although not to `ceiling`."""
    means = [x for _, x in run.known("reward")]
    best = max((each.best for each in run.recent(FEWEST) if each.best is not None), default=None)
    if best is None or not means or not min(means) < max(means) <= best:
        return ""
    for count in (min(len(means), WINDOW), min(len(means), FEWEST)):
        mean = float(np.mean(means[-count:]))
        if mean >= best - (1 - SOLVED) * (best - min(means)):
            return f"most prompts are solved: {number(mean)} of {number(best)} over the last {count} updates"
    return ""


def ceiling(run: Evidence) -> str:
    """The mean reward and the best answer's reward, if the mean is near it; otherwise empty.

    Where only metrics are on record, nothing says what the best answer earns; a plateau after a rise stands for it.
    """
    if "ceiling" not in run.memo:
        run.memo["ceiling"] = _ceiling(run)
    said: str = run.memo["ceiling"]
    return said


def _ceiling(run: Evidence) -> str:
    if run.newest is None:
        return _plateau(without_outliers([value for _, value in run.known("reward")]))
    means, best = without_outliers([value for _, value in run.known("reward")]), run.newest.best
    if not means or best is None:
        return ""
    lowest = min(means)
    # If even the best answer earns less than an earlier mean, this is not a ceiling.
    if not lowest < best or best < max(means):
        return ""
    for count in (min(len(means), WINDOW), ARRIVED):
        mean = float(np.mean(means[-count:]))
        if mean >= lowest + NEAR * (best - lowest):
            return f"{number(mean)} on average over the last {count} updates; the best answer now earns {number(best)}"
    return ""


def _plateau(means: list[float]) -> str:
    """The mean of the last updates, if it is near the highest that there was, and beyond chance above the first.

    Of 4,000 runs of 20, 40 and 100 updates of noise about one mean, 0.15 % look like one at most.
    """
    last = np.array(means[ARRIVED:][-WINDOW:])
    if len(last) < FEWEST:
        return ""
    first = np.array(means[:ARRIVED])
    noise = math.sqrt(float(first.var(ddof=1)) / len(first) + float(last.var(ddof=1)) / len(last))
    smooth = np.convolve(means, np.full(ARRIVED, 1 / ARRIVED), "valid")
    if last.mean() - first.mean() <= _t95(ARRIVED - 1) * noise:
        return ""
    if max(last.mean(), smooth[-1]) < smooth.min() + NEAR * (smooth.max() - smooth.min()):
        return ""
    span = (
        f"from {number(first.mean())} in the first {ARRIVED} updates to {number(last.mean())} in the last {len(last)}"
    )
    return f"it rose {span}; only answers show whether more can be earned"
