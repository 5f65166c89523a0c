"""Checks of a sampler that answers with weights some updates old, as an asynchronous one does."""

from __future__ import annotations

import math

import numpy as np

from rlplay.health.finding import RECENT, Evidence, Finding
from rlplay.health.gap_shape import GapShape
from rlplay.health.mismatch_checks import APART, BEHIND, equal_at_first, level, measured, shape_of
from rlplay.health.trend import WINDOW
from rlplay.trace.numbers import number

LEVELS = 16
"""Updates from which a mismatch can be said to have stopped rising: its later half, by Mann and Kendall's test."""
CHANCE = 2.0
CURRENT, OLD, ANSWERS, SOME = 0.06, 5.0, 40, 0.05
"""Nats that an answer by the weights of now is off at most, the times that the middle answer is, the answers that it
takes, and the share of them that is so near.

Measured on a small policy that learns: noise like bfloat16's alone is 0.03 to 0.05 per answer. With the first weights
or those of eight updates ago no answer of 60 was below 0.1 once the middle one was above 0.3; with a lag drawn from 0
to 8 for each answer, one in nine was 0 and the middle one 0.3 to 3.
"""


def lagging(run: Evidence) -> Finding | None:
    """Both agreed at first, then the mismatch rose to a level; or some answers are of now and others are not."""
    measure, points = measured(run)
    if not points or level(points) < BEHIND * measure.large / APART or not equal_at_first(run):
        return None
    shape = shape_of(run, RECENT)  # not those of the beginning, which were equal
    mixed = shape is not None and _mixed(shape)
    if not mixed and (len(points) < LEVELS or _rises([x for _, x in points])):
        return None
    evidence = (
        f"In update {points[0][0]} both agreed; in the last {min(len(points), WINDOW)} updates the log-probabilities "
        f"of the same tokens differ by {measure.words.format(number(level(points)))}."
    )
    if shape is not None:
        near, middle, far = (number(shape.answer(share), 2) for share in (0.1, 0.5, 0.9))
        evidence += (
            f" In the last {RECENT} the nearest tenth of the answers is off by {near} nats per token or less, the "
            f"middle one by {middle}, the farthest tenth by {far} or more."
        )
    why = "Some answers are by the weights of now and others are not" if mixed else "It rose to a level and stays there"
    return Finding(
        "sampler",
        "The sampler answers with weights some updates old",
        evidence,
        f"{why}: an asynchronous sampler lags behind the policy. A sampler that never gets the new weights would be "
        "off in all answers, and ever more, as long as the policy moves; a wrong precision or temperature would show "
        "from the first update on.",
        "Lower the lag (max_staleness, staleness_threshold or max_async_level, by trainer), drop answers that are too "
        "old, take smaller steps, or bound the ratio of training to sampler (truncated importance sampling).",
        place=run.place("mismatch"),
    )


def _mixed(shape: GapShape) -> bool:
    near, middle = shape.answer(SOME), shape.answer(0.5)
    return int(shape.answers.sum()) >= ANSWERS and near <= CURRENT and middle >= OLD * max(near, CURRENT)


def _rises(values: list[float]) -> bool:
    """Whether the later half still rises, by more than chance and noticeably."""
    y = np.array(values[len(values) // 2 :])
    count = len(y)
    later = np.sign(y[None, :] - y[:, None])[np.triu_indices(count, 1)].sum()
    quarter = max(count // 2, 1)
    return bool(
        later > CHANCE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
        or np.median(y[-quarter:]) > 2 * np.median(y[:quarter])
    )
