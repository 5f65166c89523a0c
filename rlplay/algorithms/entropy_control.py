"""The weight of the entropy bonus, as TRL's `use_adaptive_entropy` moves it from optimizer step to optimizer step.

Skywork-OR1 (He et al. 2025, arXiv:2505.22312, section 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol


class Controlled(Protocol):
    """The settings that it reads."""

    @property
    def use_adaptive_entropy(self) -> bool:
        """Whether the weight adapts."""

    @property
    def entropy_coef(self) -> float:
        """The weight, or where an adapted one begins."""

    @property
    def entropy_coef_min(self) -> float:
        """The least that it becomes."""

    @property
    def entropy_coef_max(self) -> float:
        """The most that it becomes."""

    @property
    def entropy_coef_delta(self) -> float:
        """How far it moves in a step."""

    @property
    def entropy_target(self) -> float:
        """The entropy up to which it rises and is used, nats."""


@dataclass(frozen=True)
class EntropyControl:
    """An adapted weight, the mean entropy that the last step has seen, and the `entropy_coef` that it started from."""

    coefficient: float = 0.0
    seen: float = math.inf
    start: float = 0.0

    def began(self, s: Controlled) -> EntropyControl:
        """The same; or anew, where another `entropy_coef` has been set since."""
        return self if self.start == s.entropy_coef else replace(self, coefficient=s.entropy_coef, start=s.entropy_coef)

    def used(self, s: Controlled) -> float:
        """The weight in the next step: an adapted one is 0 unless the last step's entropy was at most the target."""
        if not s.use_adaptive_entropy:
            return s.entropy_coef
        return self.began(s).coefficient if self.seen <= s.entropy_target else 0.0

    def after(self, s: Controlled, entropy: float) -> EntropyControl:
        """What a step makes of it whose tokens had this mean `entropy` before they were trained on."""
        own, delta = self.began(s).coefficient, s.entropy_coef_delta
        low = entropy <= s.entropy_target
        moved = min(own + delta, s.entropy_coef_max) if low else max(own - delta, s.entropy_coef_min)
        return EntropyControl(moved, entropy, s.entropy_coef)
