"""What of the answers on the screen is folded: long ones to a line each, identical ones to the first of them."""

from __future__ import annotations

from itertools import pairwise, starmap

import numpy as np

from rlplay.trace.answers import alike
from rlplay.trace.kinds import REWARDED, Kind
from rlplay.trace.update import Update
from rlplay.ui.tokens.facts import facts_of
from rlplay.ui.tokens.token_layout import are_long


class Folding:
    """Answers that the user unfolds stay so until another update is shown."""

    def __init__(self) -> None:
        self.unfolded: set[int] = set()
        self.copies: dict[int, int] = {}
        """How many answers each listed answer stands for, where these are several."""
        self._first: dict[int, int] = {}
        self._number = 0

    def fold(self, update: Update | None, listed: list[int], kind: Kind) -> list[int]:
        """The answers `listed` of `update` without those that equal an earlier one, in the same order.

        Equal are answers to one prompt, token for token, that earned the same and are clipped at the same tokens;
        before there are rewards, none.
        """
        if update is not None and update.number != self._number:
            self.unfolded, self._number = set(), update.number
        self._first, self.copies = {}, {}
        if update is None or update.sampled is None or update.scored is None or kind not in REWARDED:
            return listed
        forms = update.once(_forms)
        firsts: dict[int, int] = {}
        for row in listed:
            self._first[row] = firsts.setdefault(forms[row], row)
        kept = [row for row in listed if self._first[row] == row or self._first[row] in self.unfolded]
        for row in listed:
            first = self._first[row]
            if first not in self.unfolded:
                self.copies[first] = self.copies.get(first, 0) + 1
        self.copies = {row: count for row, count in self.copies.items() if count > 1}
        return kept

    def shown_for(self, answer: int) -> int:
        """The listed answer that stands for `answer`; the answer itself unless it is folded away."""
        first = self._first.get(answer, answer)
        return first if first in self.copies else answer

    def folds(self, update: Update, answer: int) -> bool:
        """Whether there is anything to fold or unfold about an answer of `update`."""
        equal = self._first.get(answer, answer)
        return (
            equal in self.copies or equal in self.unfolded or (update.sampled is not None and are_long(update.sampled))
        )

    def toggle(self, answer: int) -> None:
        """Unfold an answer, with those that it stands for; or fold them again."""
        first = self._first.get(answer, answer)
        self.unfolded ^= {first if first in self.copies or first in self.unfolded else answer}


def _forms(update: Update) -> list[int]:
    """The same number for answers that are shown as one, int [N]."""
    sampled, scored = update.sampled, update.scored
    assert sampled is not None
    assert scored is not None
    rewards = np.nan_to_num(scored.rewards, nan=np.inf).tolist()
    clips = facts_of(update).lens("clip_state")  # differs between minibatches
    clipped = (b"" if clips is None else clips[own].tobytes() for own in starmap(slice, pairwise(sampled.offsets)))
    first: dict[tuple[int, float, bytes], int] = {}
    return [first.setdefault(form, row) for row, form in enumerate(zip(alike(update), rewards, clipped, strict=True))]
