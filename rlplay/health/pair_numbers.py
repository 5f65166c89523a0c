"""What the given answers of one update are: how the chosen ones differ from the rejected ones, and how many of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlplay.health.counts import GOLD_COLUMNS, WinCount
from rlplay.trace.answers import per_answer
from rlplay.trace.pairs import identical_answers
from rlplay.trace.records import Array
from rlplay.trace.update import Update


@dataclass(frozen=True)
class PairNumbers:
    """Pairs of a chosen and a rejected answer to one prompt, and answers that were given alone."""

    chosen: int
    rejected: int
    pairs: int
    identical: int  # pairs whose answers have the same text
    longer: int  # pairs whose chosen answer has more tokens
    shorter: int  # pairs whose chosen answer has fewer
    keys: frozenset[int]  # one number for each different pair of texts
    better: WinCount  # by a gold score, or a column with the right answer: whether the chosen answer is the better one
    ended_at_once: int  # chosen answers that are nothing but one token


def pair_numbers(update: Update, held: Mapping[str, Array]) -> PairNumbers | None:
    """None if the update has no chosen answers; `held` says by column which answers contain its value, bool [N]."""
    sampled, scored = update.sampled, update.scored
    if sampled is None or scored is None or not scored.roles:
        return None
    roles = np.array(scored.roles)
    chosen, rejected = np.flatnonzero(roles == "chosen"), np.flatnonzero(roles == "rejected")
    of_group = {int(sampled.group[row]): int(row) for row in rejected}
    both = [(int(row), of_group[int(sampled.group[row])]) for row in chosen if int(sampled.group[row]) in of_group]
    sizes = per_answer(sampled, sampled.mask)
    identical = identical_answers(sampled)
    score = _score(update, held)
    won, compared = 0.0, 0
    for one, other in both:
        if score is not None and score[one] != score[other] and np.isfinite(score[[one, other]]).all():
            won, compared = won + float(score[one] > score[other]), compared + 1
    return PairNumbers(
        chosen=len(chosen),
        rejected=len(rejected),
        pairs=len(both),
        identical=sum(bool(identical[sampled.group[one]]) for one, _ in both),
        longer=sum(bool(sizes[one] > sizes[other]) for one, other in both),
        shorter=sum(bool(sizes[one] < sizes[other]) for one, other in both),
        keys=frozenset(hash((_text(update, one), _text(update, other))) for one, other in both),
        better=WinCount(won, compared),
        ended_at_once=int((sizes[chosen] <= 1).sum()),
    )


def _score(update: Update, held: Mapping[str, Array]) -> Array | None:
    """What says which answer is better: a gold score, or whether it contains what a gold column says."""
    assert update.scored is not None
    if update.scored.gold:
        return np.asarray(next(iter(update.scored.gold.values())), np.float64)
    named = [has for name, has in held.items() if name.lower() in GOLD_COLUMNS]
    return None if not named else np.asarray(named[0], np.float64)


def _text(update: Update, row: int) -> str:
    assert update.sampled is not None
    start, end = update.sampled.offsets[row : row + 2]
    return f"{update.sampled.prompts[int(update.sampled.group[row])]}\0{''.join(update.sampled.texts[start:end])}"
