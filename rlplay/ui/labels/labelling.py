"""Labelling pairs, as plain data: the current pair and the choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from rlplay.link.messages import Prefer
from rlplay.trace.pairs import identical_answers
from rlplay.trace.questions import Judge, Judged
from rlplay.trace.records import Choice, Sampled
from rlplay.trace.update import Update

Side = Literal["a", "b"]
SIDES: tuple[Side, ...] = ("a", "b")
NONE_LEFT = "An update learns from at least one pair: choose A or B for this one."


class Labelling:
    """The waiting pairs, one after another.

    A choice is handed in at once and the next pair appears, except at the last pair: there it is held, and can be taken
    back, until the user goes on. The models' scores of a pair are requested only once it has a choice. Methods that
    need the engine return the command for it.
    """

    def __init__(self, update: Update, asks: Sequence[int]) -> None:
        """Pairs of `update`, which has its answers; `asks` are the pairs without a label, at least one."""
        assert update.sampled is not None
        self.update = update
        self.sampled: Sampled = update.sampled
        self.asks = list(asks)
        self.pair = self.asks[0]
        self.held: Choice | None = None
        self.chosen: tuple[int, Choice] | None = None  # the last pair that got a choice, and the choice
        self.judged: Judged | None = None  # the models' scores of that pair
        self.refused = ""
        # Submitted choices, before the engine confirms them; pairs of equal texts are skipped without asking.
        self._said: dict[int, Choice] = dict.fromkeys(np.flatnonzero(identical_answers(self.sampled)).tolist(), "skip")
        self._trail: list[int] = []  # the pairs already submitted, in order

    @property
    def pairs(self) -> int:
        """The number of pairs, labelled or not."""
        return len(self.sampled.prompts)

    @property
    def labels(self) -> dict[int, Choice]:
        """All labels so far, including the held choice."""
        return self.update.labels | self._said | ({} if self.held is None else {self.pair: self.held})

    @property
    def left(self) -> list[int]:
        """The pairs after the current one."""
        return [pair for pair in self.asks if pair != self.pair and pair not in self._trail]

    def answer(self, side: Side) -> int:
        """The completion on that side."""
        first, second = (int(row) for row in np.flatnonzero(self.sampled.group == self.pair))
        return first if side == "a" else second

    def choose(self, choice: Choice) -> Judge | None:
        """Hold a choice and request the models' scores; None if they are, or if no pair would have a label."""
        others = [said for pair, said in self.labels.items() if pair != self.pair]
        if choice == "skip" and len(others) + 1 == self.pairs and set(others) <= {"skip"}:
            self.refused = NONE_LEFT
            return None
        again, self.held, self.refused = self.held is not None, choice, ""
        self.chosen = self.pair, choice
        if again:
            return None
        self.judged = None
        return Judge(self.pair)

    def take_asks(self, asks: Sequence[int]) -> None:
        """Take the waiting pairs; skip the current one if a script has labelled it meanwhile."""
        before, self.asks = self.asks, list(asks)
        if self.held is None and self.pair in before and self.pair not in self.asks and self.left:
            self._show(self.left[0])

    def take_judged(self, judged: Judged) -> None:
        """Take the models' scores of the last pair that got a choice, or why there are none, in whatever update."""
        if self.chosen is None or judged.pair != self.chosen[0]:
            return
        if judged.refused or judged.update == self.update.number:
            self.judged = judged

    def go_on(self) -> Prefer | None:
        """Submit the held choice and show the next pair, if there is one; None if no choice is held."""
        if self.held is None:
            return None
        said = Prefer(self.pair, self.held)
        self._said[self.pair] = self.held
        self._trail.append(self.pair)
        if self.left:
            self._show(self.left[0])
        return said

    def take_back(self) -> None:
        """Drop the held choice, or return to the last submitted pair to choose again."""
        self.chosen = self.judged = None
        if self.held is None and self._trail:
            self._show(self._trail.pop())
        else:
            self._show(self.pair)

    def enough(self) -> list[Prefer]:
        """Submit the held choice and skip all other pairs; empty if no pair has a label."""
        if not set(self.labels.values()) & set(SIDES):
            self.refused = NONE_LEFT
            return []
        said = [] if self.held is None else [Prefer(self.pair, self.held)]
        skipped = [pair for pair in [self.pair, *self.left] if pair not in self.labels]
        return said + [Prefer(pair, "skip") for pair in skipped]

    def _show(self, pair: int) -> None:
        self.pair, self.held, self.refused = pair, None, ""
