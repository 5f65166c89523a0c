"""Two moments of a run: what became of the answers to the prompts that were asked at both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rlplay.trace.evaluations import parts_of
from rlplay.trace.records import Array, Evaluated
from rlplay.trace.update import Update

Verdict = Literal["worse", "better", "same", "unscored"]
VERDICTS: tuple[Verdict, ...] = ("worse", "better", "same", "unscored")


class Answers(NamedTuple):
    """The answers to a prompt at one moment, with their rewards (NaN: none) and the mean of these."""

    texts: list[str]
    rewards: list[float]
    mean: float
    group: int | None = None  # of the update's batch; None: held out


class AskedTwice(NamedTuple):
    """A prompt that was asked at both moments."""

    prompt: str
    columns: dict[str, Any]
    before: Answers
    after: Answers

    @property
    def change(self) -> float:
        """Of the mean reward; NaN without rewards at either moment."""
        return self.after.mean - self.before.mean

    @property
    def verdict(self) -> Verdict:
        """The sign of the change."""
        if not math.isfinite(self.change):
            return "unscored"
        return "worse" if self.change < 0 else "better" if self.change > 0 else "same"


def held_out_twice(before: Evaluated, after: Evaluated) -> list[AskedTwice]:
    """The held-out prompts of both evaluations, the largest fall of the reward first."""
    return _matched(_evaluated(before), _evaluated(after))


def trained_twice(before: Update, after: Update) -> list[AskedTwice]:
    """The prompts that both updates trained on, the largest fall of the reward first."""
    return _matched(_trained(before), _trained(after))


def shared_groups(before: Update, after: Update) -> dict[int, int]:
    """The groups of `after` whose prompt `before` has too, with the group there."""
    asked = trained_twice(before, after)
    return {a.group: b.group for _, _, b, a in asked if a.group is not None and b.group is not None}


_Asked = tuple[str, dict[str, Any], Answers]


def _matched(before: Sequence[_Asked], after: Sequence[_Asked]) -> list[AskedTwice]:
    """The prompts of both: the second of two equal ones with the second of two equal ones."""
    waiting: dict[str, list[Answers]] = defaultdict(list)
    for prompt, columns, answers in before:
        waiting[repr((prompt, columns))].append(answers)
    found = [
        AskedTwice(prompt, columns, waiting[key].pop(0), answers)
        for prompt, columns, answers in after
        if waiting[key := repr((prompt, columns))]
    ]
    return sorted(found, key=lambda each: each.change if math.isfinite(each.change) else math.inf)


def _evaluated(record: Evaluated) -> list[_Asked]:
    return [
        (
            record.prompts[part.start],
            record.columns[part.start] if record.columns else {},
            Answers(record.completions[part], record.rewards[part].tolist(), _mean(record.rewards[part])),
        )
        for part in parts_of(record)
    ]


def _trained(update: Update) -> list[_Asked]:
    sampled, scored = update.sampled, update.scored
    if sampled is None or not sampled.done:
        return []
    rewards = np.full(len(sampled.group), np.nan) if scored is None else scored.rewards
    found = []
    for group, prompt in enumerate(sampled.prompts):
        rows = np.flatnonzero(sampled.group == group)
        spans = [slice(*sampled.offsets[row : row + 2].tolist()) for row in rows]
        texts = ["".join(sampled.texts[span]) for span in spans]
        answers = Answers(texts, rewards[rows].tolist(), _mean(rewards[rows]), group)
        found.append((prompt, sampled.columns[group] if sampled.columns else {}, answers))
    return found


def _mean(rewards: Array) -> float:
    known = rewards[np.isfinite(rewards)]
    return float(known.mean()) if len(known) else math.nan
