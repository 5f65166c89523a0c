"""What the opening tells: a recorded run of the flagship scenario. `python -m screenshots.opening` records it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

PATH = Path(__file__).with_name("story.json")


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer, and whether its last number is right."""

    text: str
    right: bool


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run from before its first update to the end of its last.

    `settings` are those of the scenario, which made the run with `seed`. `shares` are the shares of right answers to
    the `held_out` problems after 0, 1, … updates. `before` is the first answer of the first batch, `after` the greedy
    answer to the same `question` after the last update.
    """

    scenario: str
    title: str
    seed: int
    settings: dict[str, Any]
    question: str
    before: Answer
    after: Answer
    held_out: int
    shares: list[float]

    @property
    def updates(self) -> int:
        """How many updates the run took."""
        return len(self.shares) - 1


def recorded() -> Story:
    """The story that comes with rlplay."""
    return msgspec.json.decode(PATH.read_bytes(), type=Story)
