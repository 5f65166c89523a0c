"""Saying which of two answers is better, as plain data: the pair that is shown, and what was chosen of it."""

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
    """One pair after another of those that wait.

    A choice is held until the user goes on, and can be taken back; only then the engine is told, and only once a choice
    is held the models' view of the pair is asked for. Methods that need the engine return what to tell it.
    """

    def __init__(self, update: Update, asks: Sequence[int]) -> None:
        """Pairs of `update`, whose answers are there; `asks` are those that have no label yet, at least one."""
        assert update.sampled is not None
        self.update = update
        self.sampled: Sampled = update.sampled
        self.asks = list(asks)
        self.pair = self.asks[0]
        self.held: Choice | None = None
        self.judged: Judged | None = None
        self.refused = ""
        # Handed in, the engine's word of it comes later; twice the same text is never asked about.
        self._said: dict[int, Choice] = dict.fromkeys(np.flatnonzero(identical_answers(self.sampled)).tolist(), "skip")
        self._trail: list[int] = []  # the pairs that were gone on from, in order

    @property
    def pairs(self) -> int:
        """How many there are, labelled or not."""
        return len(self.sampled.prompts)

    @property
    def labels(self) -> dict[int, Choice]:
        """What was said so far, the choice that is held included."""
        return self.update.labels | self._said | ({} if self.held is None else {self.pair: self.held})

    @property
    def left(self) -> list[int]:
        """The pairs to come after the one that is shown."""
        return [pair for pair in self.asks if pair != self.pair and pair not in self._trail]

    def answer(self, side: Side) -> int:
        """The completion that stands on that side."""
        first, second = (int(row) for row in np.flatnonzero(self.sampled.group == self.pair))
        return first if side == "a" else second

    def choose(self, choice: Choice) -> Judge | None:
        """Hold a choice and ask what the models think; nothing if one is held already, or all would be left out."""
        if self.held is not None:
            return None
        others = [said for pair, said in self.labels.items() if pair != self.pair]
        if choice == "skip" and len(others) + 1 == self.pairs and set(others) <= {"skip"}:
            self.refused = NONE_LEFT
            return None
        self.held, self.refused = choice, ""
        return Judge(self.pair)

    def take_asks(self, asks: Sequence[int]) -> None:
        """These pairs wait now; one that a script has labelled meanwhile is not asked about any more."""
        before, self.asks = self.asks, list(asks)
        if self.held is None and self.pair in before and self.pair not in self.asks and self.left:
            self._show(self.left[0])

    def take_judged(self, judged: Judged) -> None:
        """What the models make of a pair."""
        if (judged.update, judged.pair) == (self.update.number, self.pair) and self.held is not None:
            self.judged = judged

    def go_on(self) -> Prefer | None:
        """Hand in the choice that is held and show the next pair, if there is one; nothing if none is held."""
        if self.held is None:
            return None
        said = Prefer(self.pair, self.held)
        self._said[self.pair] = self.held
        self._trail.append(self.pair)
        if self.left:
            self._show(self.left[0])
        return said

    def take_back(self) -> None:
        """Let go of the choice that is held, or go back to the last one that was handed in and ask about it again."""
        if self.held is None and self._trail:
            self._show(self._trail.pop())
        else:
            self._show(self.pair)

    def enough(self) -> list[Prefer]:
        """Hand in the choice that is held and leave out all pairs without one; nothing if no pair has an answer."""
        if not set(self.labels.values()) & set(SIDES):
            self.refused = NONE_LEFT
            return []
        said = [] if self.held is None else [Prefer(self.pair, self.held)]
        skipped = [pair for pair in [self.pair, *self.left] if pair not in self.labels]
        return said + [Prefer(pair, "skip") for pair in skipped]

    def _show(self, pair: int) -> None:
        self.pair, self.held, self.judged, self.refused = pair, None, None, ""
