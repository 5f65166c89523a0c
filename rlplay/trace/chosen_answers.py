"""Answers of an update by their prompt and their words, as scripts name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np

from rlplay.trace.records import Sampled, spans
from rlplay.trace.text import quote
from rlplay.trace.update import Update

Side = Literal["same prompt", "other prompts"]


def answer_to(update: Update, prompt: str, candidate: str = "", token: int = 0) -> int:
    """The first answer to `prompt`, if possible one that has the text `candidate` as its token `token`, from 0.

    Raises ValueError, one line, if the update did not ask this.
    """
    sampled = update.sampled
    rows = [] if sampled is None else answers_of(update, prompt, "same prompt")
    if sampled is None or not rows:
        raise ValueError(f"update {update.number} did not ask {quote(prompt)}")
    offsets = sampled.offsets

    def has_it(row: int) -> bool:
        place = int(offsets[row]) + token
        return place < offsets[row + 1] and sampled.texts[place].strip() == candidate.strip()

    return next(filter(has_it, rows), rows[0])


def answers_of(update: Update, prompt: str, side: Side, text: str = "") -> list[int]:
    """The answers to `prompt`, or to all others; with `text`, those that are exactly that."""
    sampled = update.sampled
    if sampled is None:
        return []
    wanted, words = _words(prompt), _texts(sampled)
    asked = [_words(each) == wanted for each in sampled.prompts]
    return [
        row for row, group in enumerate(sampled.group.tolist())
        if asked[group] == (side == "same prompt") and text in ("", words(row))
    ]  # fmt: skip


def tokens_of(update: Update, answers: Iterable[int]) -> list[int]:
    """The places of all tokens that the policy sampled in these answers, ascending."""
    sampled = update.sampled
    assert sampled is not None
    own = spans(sampled.offsets, np.array(sorted(set(answers)), dtype=np.int64))
    chosen: list[int] = own[sampled.mask[own] == 1].tolist()
    return chosen


def _words(text: str) -> str:
    return " ".join(text.split())


def _texts(sampled: Sampled) -> Callable[[int], str]:
    """The text of an answer, without the token that ends it."""
    bounds, cut = sampled.offsets.tolist(), sampled.truncated.tolist()
    return lambda row: "".join(sampled.texts[bounds[row] : bounds[row + 1] - (not cut[row])]).strip()
