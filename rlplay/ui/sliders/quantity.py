"""What can be slid: a setting whose effect on the answers at hand is previewed, or the gap of two scores."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.settings import Settings
from rlplay.verbs import SLIDERS

GAP = "gap"
_STEPS = {"gamma": 0.05, "temperature": 0.05, "epsilon": 0.01, "beta": 0.01}
_HIGHEST = {"temperature": 3.0, "epsilon": 0.5, "beta": 1.0}
"""Where the slider ends, if the setting may be larger than what is interesting."""


@dataclass(frozen=True)
class Quantity:
    """A number from `low` to `high` in steps of `step`. `lens` is the statistic of tokens that it changes."""

    name: str
    title: str
    low: float
    high: float
    step: float
    begins: float
    lens: str = "advantages"

    def snapped(self, value: float) -> float:
        """The nearest step within the ends."""
        steps = round((min(max(value, self.low), self.high) - self.low) / self.step)
        return round(min(self.low + steps * self.step, self.high), 6)


def quantity(name: str, settings: Settings) -> Quantity:
    """The quantity of a name in `SLIDERS`; a setting begins at its present value."""
    assert name in SLIDERS
    if name == GAP:
        return Quantity(GAP, "Score gap", -4.0, 4.0, 0.05, 0.0)
    knob, now = KNOBS[name], float(getattr(settings, name))
    low, high = float(knob.low or 0.0), _HIGHEST.get(name, float(knob.high or 1.0))
    lens = "returns" if name == "gamma" else "advantages"
    return Quantity(name, knob.title, low, max(high, now), _STEPS.get(name, knob.step), now, lens)


def chance_to_win(gap: float) -> float:
    """P(the first answer is preferred) by the gap of the two scores (Bradley and Terry 1952): σ(gap)."""
    return float(NumpyArrays.sigmoid(gap))
