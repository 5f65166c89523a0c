"""Whether the reward rises: a straight line through its last updates, with what chance leaves open."""

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
"""Updates that the line is laid through; with fewer, chance leaves nearly every slope open."""
T95 = 2.101
"""Student's t with WINDOW − 2 degrees of freedom, 97.5 %: so many standard errors are half of a 95 % interval."""

NEAR = 0.9
"""The share of the way from the lowest mean reward to the most that an answer earns, after which little is left."""


@dataclass(frozen=True)
class Trend:
    """The reward's slope per update by least squares, and the half-width of its 95 % interval.

    The interval takes the updates' deviations from the line as independent, which prompts drawn anew make them.
    """

    slope: float
    margin: float

    @property
    def text(self) -> str:
        """In words: "+0.0012 ± 0.0031 per update over the last 20 (95 %)"."""
        sign = "+" if self.slope > 0 else ""
        return f"{sign}{number(self.slope)} ± {number(self.margin)} per update over the last {WINDOW} (95 %)"


def trend(history: History, last: int) -> Trend | None:
    """Over the WINDOW updates up to `last`; None where there are not as many with a reward."""
    points = [(n, value) for n, value in _rewards(history, last) if math.isfinite(value)][-WINDOW:]
    if len(points) < WINDOW:
        return None
    x, y = np.array(points, dtype=np.float64).T
    if np.ptp(y) == 0:  # else rounding would make a slope of it
        return Trend(0.0, 0.0)
    x, y = x - x.mean(), y - y.mean()
    slope = float(x @ y / (x @ x))
    left = y - slope * x
    error = math.sqrt(float(left @ left) / (WINDOW - 2) / float(x @ x))
    return Trend(slope, T95 * error)


def not_risen(update: Update, history: History, settings: dict[str, Any]) -> str:
    """That the reward falls, or cannot be told from a flat one, and what to try; empty if neither is shown."""
    found = trend(history, update.number)
    if update.finished is None or found is None or found.slope > found.margin or _ceiling(update, history):
        return ""
    if settings.get("loss_type", "policy_gradient") != "policy_gradient":
        return ""
    falls = found.slope < -found.margin
    said = f"The reward {'falls' if falls else 'is not distinguishable from flat'}: {found.text}."
    return f"{said} {' '.join(_remedies(update, history, falls))}"


def risen(update: Update, history: History) -> str:
    """The slope, or that there is nothing left to rise to; empty before it can be told."""
    if full := _ceiling(update, history):
        return f"at its ceiling: {full}"
    found = trend(history, update.number)
    return "" if found is None else found.text


def _rewards(history: History, last: int) -> list[tuple[int, float]]:
    return [(n, value) for n, value in zip(*history.series("reward"), strict=True) if n <= last]


def _ceiling(update: Update, history: History) -> str:
    """The mean reward beside the most that an answer of `update` earns, where it has come near that."""
    means = [value for _, value in _rewards(history, update.number) if math.isfinite(value)]
    rewards = np.zeros(0) if update.scored is None else update.scored.rewards
    rewards = rewards[np.isfinite(rewards)]
    if not means or not len(rewards):
        return ""
    best, lowest, now = float(rewards.max()), min(means), float(np.mean(means[-WINDOW:]))
    # Where even the best answer earns less than the mean once was, nothing is reached.
    if not lowest < best >= max(means) or now < lowest + NEAR * (best - lowest):
        return ""
    count = min(len(means), WINDOW)
    return f"{number(now)} on average over the last {count} updates; the best answer now earns {number(best)}"


def _remedies(update: Update, history: History, falls: bool) -> list[str]:
    """What the other metrics point to, over the same updates: the surest cause first."""
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
    """Of a metric over the last WINDOW updates; not a number where there is none, and then nothing is compared."""
    values = [value for n, value in zip(*history.series(name), strict=True) if last - WINDOW < n <= last]
    return float(np.mean(values)) if values else math.nan
