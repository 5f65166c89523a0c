"""The surrogate over the ratio, and how many of an update's tokens are beyond its walls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.equations import used
from rlplay.algorithms.settings import Settings, row
from rlplay.trace.pulls import Pulls
from rlplay.trace.records import Array

NEAREST, FARTHEST = 0.0, 1.0
"""Where a lower wall may be, as a distance from 1; an upper one may be farther."""


class Walls(NamedTuple):
    """The distances of the clip bounds from 1: 1 − `low` and 1 + `high`."""

    low: float
    high: float

    @classmethod
    def of(cls, settings: Settings) -> Walls:
        """Those of the settings."""
        return cls(*settings.clip_range)

    def moved(self, upper: bool, to: float, together: bool) -> Walls:
        """With one wall at distance `to`, or both; the lower one at most at ratio 0."""
        to = round(max(to, NEAREST), 2)
        low = min(to, FARTHEST) if together or not upper else self.low
        return Walls(low, to if together or upper else self.high)

    @property
    def bounds(self) -> dict[str, float]:
        """ε and ε_high, as the surrogates name them."""
        return {"epsilon": self.low, "epsilon_high": self.high}

    def changes(self, s: Settings) -> dict[str, float]:
        """The settings that differ from those of `s`, by name."""
        low, high = s.clip_range
        if s.epsilon_high is None and self.low == self.high:
            return {} if self.low == low else {"epsilon": self.low}
        found = {"epsilon": self.low} if self.low != low else {}
        return found | ({"epsilon_high": self.high} if self.high != high else {})


def has_picture(s: Settings) -> bool:
    """Whether the surrogate is a function of the ratio and the advantage alone."""
    read = set(used(s))
    quantities = read & {"logprobs", "log_ratio", "mask", "old_logprobs", "ref_logprobs"}
    return s.loss_type == "policy_gradient" and "ratio" in read and not quantities


def objective(s: Settings, walls: Walls, ratio: Array, advantage: float) -> Array:
    """What an update makes larger, −S, for each ratio [R], at one advantage: the engine's own function, in float64."""
    quantities = {"ratio": ratio, "advantages": np.full_like(ratio, advantage), **walls.bounds}
    with np.errstate(all="ignore"):
        found = call_choice(row(s, "surrogate").compute, NumpyArrays, quantities, s)
    return -np.broadcast_to(np.asarray(found, dtype=np.float64), ratio.shape)


def beyond(s: Settings, walls: Walls, found: Pulls) -> Array:
    """Which of the tokens [P] the walls leave without a gradient, bool [P]; none of a surrogate without walls."""
    compute = row(s, "surrogate").gradient_zero
    if compute is None:
        return np.zeros(len(found.ratio), dtype=bool)
    quantities = {"ratio": found.ratio, "advantages": found.advantage, **walls.bounds}
    return np.asarray(call_choice(compute, NumpyArrays, quantities, s) != 0)
