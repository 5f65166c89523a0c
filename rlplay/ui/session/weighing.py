"""What the screen knows of the weights before and after an update, as plain data."""

from __future__ import annotations

from typing import Literal

from rlplay.trace.questions import (
    AnyWeighed,
    AnyWeights,
    LayersRead,
    Neighbours,
    NeighboursFound,
    ReadLayers,
    Weigh,
    Weighed,
)
from rlplay.ui.session.answer_at import AnswerAt

View = Literal["moved", "layers", "neighbours"]


class Weighing:
    """An update, a token of an answer, and the engine's answers about both. `version` changes with them."""

    def __init__(self) -> None:
        self.update = 0
        self.place: AnswerAt | None = None
        self.weighed: Weighed | None = None  # the newest of any update
        self.read: LayersRead | None = None
        self.found: NeighboursFound | None = None
        self.version = 0
        self._asked: dict[View, AnyWeights] = {}
        self._rewinds = 0

    def about(self, update: int, place: AnswerAt | None) -> None:
        """Be about this update and this token from now on."""
        if (update, place) != (self.update, self.place):
            self.update, self.place = update, place
            self.version += 1

    def at(self, rewinds: int) -> None:
        """Forget all answers if the run went back: the same updates will have other weights."""
        if rewinds == self._rewinds:
            return
        self._rewinds = rewinds
        self.weighed = self.read = self.found = None
        self._asked = {}
        self.version += 1

    def question(self, view: View) -> AnyWeights | None:
        """What a view needs to know; None if it knows, if it has asked already, or if there is nothing to ask."""
        wanted = self._wanted(view)
        if wanted is None or self._asked.get(view) == wanted:
            return None
        self._asked[view] = wanted
        return wanted

    def _wanted(self, view: View) -> AnyWeights | None:
        if not self.update:
            return None
        if view == "moved":
            return Weigh(self.update)
        place = self.place
        if place is None or place.token >= len(place.ids):
            return None
        token = place.ids[place.token]
        return ReadLayers(place.prefix, token, self.update) if view == "layers" else Neighbours(token, self.update)

    def take(self, answer: AnyWeighed) -> None:
        """Take an answer of the engine. One that was interrupted may be asked for again."""
        match answer:
            case Weighed():
                self.weighed = answer
                if answer.refused and not answer.done:
                    self._asked.pop("moved", None)
            case LayersRead():
                self.read = answer
            case NeighboursFound():
                self.found = answer
        self.version += 1
