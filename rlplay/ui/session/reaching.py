"""What is known of a token's probability by the reward of its answer, as plain data: measured points and a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from rlplay.trace.questions import Reach, Reached

_AROUND = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
"""Rewards to measure at first, beside the one that was earned."""
_CLOSE = 1e-9


@dataclass
class Reaching:
    """The token `token` of completion `completion`, whose answer earned `reward`."""

    completion: int
    token: int
    reward: float
    points: dict[float, float] = field(default_factory=dict)  # probability after the update, by reward: measured
    old: float | None = None  # the probability that it was sampled with
    target: float | None = None  # where the learner wants it
    refused: str = ""
    asked: list[float] = field(default_factory=list)  # rewards that the engine was asked for and has not answered
    version: int = 0

    def first(self) -> Reach:
        """The question to begin with."""
        return self._ask([round(self.reward + step, 6) if step else self.reward for step in _AROUND])

    def drag(self, target: float) -> None:
        """Want another probability."""
        self.target = min(max(round(target, 3), 0.0), 1.0)
        self.version += 1

    @property
    def as_trained(self) -> float | None:
        """The probability after the update as it was."""
        return self.measured(self.reward)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The lowest and the highest measured probability."""
        return (min(self.points.values()), max(self.points.values())) if self.points else None

    def needed(self) -> float | None:
        """The reward whose probability is `target`, by straight lines between the points; None if none reaches it.

        Of several it is the one nearest to the reward that was earned.
        """
        if self.target is None:
            return None
        found = [
            low + (self.target - self.points[low]) / ((self.points[high] - self.points[low]) or 1.0) * (high - low)
            for low, high in pairwise(sorted(self.points))
            if min(self.points[low], self.points[high]) <= self.target <= max(self.points[low], self.points[high])
        ]
        return min(found, key=lambda reward: abs(reward - self.reward), default=None)

    def check(self) -> Reach | None:
        """Measure at the reward that the target needs; None if it is not known, or measured already."""
        needed = self.needed()
        if needed is None or self.measured(needed) is not None:
            return None
        return self._ask([round(needed, 6)])

    def measured(self, reward: float) -> float | None:
        """The probability measured at a reward, None if none is."""
        return next((p for each, p in self.points.items() if abs(each - reward) < 1e-5), None)

    def take(self, answer: Reached) -> None:
        """Take an answer of the engine; one about another token is ignored."""
        if (answer.completion, answer.token) != (self.completion, self.token):
            return
        self.version += 1
        self.refused = answer.refused
        if answer.refused:
            self.asked = []
            return
        if self.old is None:
            self.old, self.reward = answer.old, answer.reward
        self.points |= dict(zip(answer.rewards, answer.probabilities, strict=True))
        self.asked = [] if answer.done else [each for each in self.asked if self.measured(each) is None]

    def _ask(self, rewards: list[float]) -> Reach:
        self.asked, self.refused = rewards, ""
        self.version += 1
        return Reach(self.completion, self.token, rewards)
