"""Whether the reward rises: a straight line through the last updates, with its statistical uncertainty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.trace.history import History
from rlplay.trace.update import Update
from rlplay.ui.format.numbers import percent
from rlplay.ui.format.text import BY_KNOB
from rlplay.ui.plot.picture import number

WINDOW = 20
"""Updates to fit the line to; with fewer, hardly any slope is distinguishable from chance."""
T95 = 2.101
"""Student's t with WINDOW − 2 degrees of freedom, 97.5 %: so many standard errors are half of a 95 % interval."""

NEAR = 0.9
"""At this share of the way from the lowest mean reward to the best answer's reward, the reward is at its ceiling."""


@dataclass(frozen=True)
class Trend:
    """The reward's slope per update by least squares, and the half-width of its 95 % interval.

    The interval assumes independent deviations from the line: each update draws new prompts.
    """

    slope: float
    margin: float

    @property
    def text(self) -> str:
        """As text: "+0.0012 ± 0.0031 per update over the last 20 (95 %)"."""
        sign = "+" if self.slope > 0 else ""
        return f"{sign}{number(self.slope)} ± {number(self.margin)} per update over the last {WINDOW} (95 %)"


def trend(history: History, last: int) -> Trend | None:
    """The trend over the WINDOW updates up to `last`; None if fewer updates have a reward."""
    points = [(n, value) for n, value in _rewards(history, last) if math.isfinite(value)][-WINDOW:]
    if len(points) < WINDOW:
        return None
    x, y = np.array(points, dtype=np.float64).T
    if np.ptp(y) == 0:  # otherwise rounding would yield a slope
        return Trend(0.0, 0.0)
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    left = y - slope * x
    error = math.sqrt(float(left @ left) / (WINDOW - 2) / float(x @ x))
    return Trend(slope, T95 * error)


def not_risen(update: Update, history: History, settings: dict[str, Any]) -> str:
    """Says that the reward falls or is not distinguishable from flat, and what to try; empty if neither holds."""
    found = trend(history, update.number)
    if update.finished is None or found is None or found.slope > found.margin or _ceiling(update, history):
        return ""
    if settings.get("loss_type", "policy_gradient") != "policy_gradient":
        return ""
    falls = found.slope < -found.margin
    said = f"The reward {'falls' if falls else 'is not distinguishable from flat'}: {found.text}."
    return f"{said} {' '.join(_remedies(update, history, falls))}"


def risen(update: Update, history: History) -> str:
    """The slope, or that the reward is at its ceiling; empty before there are enough updates."""
    if full := _ceiling(update, history):
        return f"at its ceiling: {full}"
    found = trend(history, update.number)
    return "" if found is None else found.text


def _rewards(history: History, last: int) -> list[tuple[int, float]]:
    return [(n, value) for n, value in zip(*history.series("reward"), strict=True) if n <= last]


def _ceiling(update: Update, history: History) -> str:
    """The mean reward and the best answer's reward in `update`, if the mean is near it; otherwise empty."""
    means = [value for _, value in _rewards(history, update.number) if math.isfinite(value)]
    rewards = np.zeros(0) if update.scored is None else update.scored.rewards
    rewards = rewards[np.isfinite(rewards)]
    if not means or not len(rewards):
        return ""
    best, lowest, now = float(rewards.max()), min(means), float(np.mean(means[-WINDOW:]))
    # If even the best answer earns less than an earlier mean, this is not a ceiling.
    if not lowest < best >= max(means) or now < lowest + NEAR * (best - lowest):
        return ""
    count = min(len(means), WINDOW)
    return f"{number(now)} on average over the last {count} updates; the best answer now earns {number(best)}"


def _remedies(update: Update, history: History, falls: bool) -> list[str]:
    """Remedies suggested by other metrics over the same updates, the most certain cause first."""
    flat, moved, clipped = (
        _mean(history, name, update.number) for name in ("frac_reward_zero_std", "kl_old", "clip_ratio/region_mean")
    )
    found = []
    if falls:
        found.append(f"`z` goes back; try a smaller learning_rate{BY_KNOB}.")
    if flat >= 0.5:
        found.append(
            f"{percent(flat)} of the groups earn equal rewards and teach nothing: try other prompts, easier or "
            f"harder, or more num_generations{BY_KNOB}."
        )
    if moved < 1e-5:
        found.append(f"The KL of an update is only {number(moved)}: try a larger learning_rate{BY_KNOB}.")
    if clipped >= 0.3:
        found.append(f"{percent(clipped)} of the tokens are clipped: try fewer num_iterations{BY_KNOB}.")
    return found or [f"With more num_prompts{BY_KNOB} smaller rises show; a larger learning_rate makes larger ones."]


def _mean(history: History, name: str, last: int) -> float:
    """The mean of a metric over the last WINDOW updates; NaN without values, so that comparisons are false."""
    values = [value for n, value in zip(*history.series(name), strict=True) if last - WINDOW < n <= last]
    return float(np.mean(values)) if values else math.nan
