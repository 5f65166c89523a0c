"""What a per-token statistic is: its name, its scale, and the function that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rlplay.trace.kinds import Kind, Learning
from rlplay.trace.records import Array
from rlplay.trace.update import Phase, Update


@dataclass(frozen=True)
class Lens:
    """One per-token statistic.

    `low` and `high` are the ends of its colour scale, fixed so that shades compare between updates. The neutral value
    is the middle of a "diverging" scale and the `low` end of a "sequential" one; "states" has three: −1, 0 and 1.
    `values` returns float32 [T], NaN where a token has no value, or None before the phase that computes it. `instead`
    replaces fields in some kinds of update. `adds_up` says that the value is a sum over the passes on a batch.
    Where most values lie at one end of a "sequential" scale, `finest` names it: shades are closer together there.
    A `special` one is listed in updates that have it only: it needs a sampler or a teacher that is not the policy.
    """

    name: str  # the exported column, as in prime-rl's token files where those have one
    title: str
    symbol: str
    formula: str
    unit: str
    phase: Phase
    scale: Literal["diverging", "sequential", "states"]
    low: float
    high: float
    reading: str
    values: Callable[[Update], Array | None]
    instead: Mapping[Kind, Mapping[str, Any]] = field(default_factory=dict)
    adds_up: bool = False
    finest: Literal["", "low", "high"] = ""
    special: bool = False

    @property
    def two_sided(self) -> bool:
        """Whether the scale has a neutral middle, with values on both sides of it."""
        return self.scale != "sequential"

    def share(self, values: Array) -> Array:
        """Where values are on the way from the neutral one, 0, to the end of the scale, 1 or −1; beyond it, further."""
        if self.two_sided:
            middle = (self.low + self.high) / 2
            return np.asarray((values - middle) / (self.high - middle))
        unit = np.asarray((values - self.low) / (self.high - self.low))
        if not self.finest:
            return unit
        inside = np.clip(unit, 0.0, 1.0)
        return np.sqrt(inside) if self.finest == "low" else 1 - np.sqrt(1 - inside)

    def at(self, share: float) -> float:
        """The value at a `share` of a one-sided scale, 0 to 1."""
        unit = {"low": share**2, "high": 1 - (1 - share) ** 2}.get(self.finest, share)
        return self.low + (self.high - self.low) * unit

    def of(self, settings: Learning) -> Lens:
        """The statistic for an update with these settings, with its title and scale."""
        instead = dict(self.instead.get(settings.kind, {}))
        passes = settings.num_iterations
        if self.adds_up and passes > 1:
            instead |= {"low": self.low * passes, "high": self.high * passes}
        return replace(self, **instead) if instead else self


def known(values: Array | None) -> Array | None:
    """None if there are tokens and none has a value: another trainer made the run and did not record it."""
    return None if values is None or (len(values) and np.isnan(values).all()) else values
