"""Numbers of one update's prompts that go on where an earlier answer ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

import numpy as np

from rlplay.trace.records import Array, Sampled

MOST = 48
"""Prompts that are compared: each with all others."""
FIRST = 24
"""Characters by which a text is recognised."""
_THOUGHT = "</think>"

Change = Literal["tokens", "thinking", "text"]
"""What of an answer the next prompt has changed: only its tokens, its thinking is gone, or its text."""


@dataclass(frozen=True)
class TurnNumbers:
    """Prompts of an update that begin with another prompt of it."""

    continued: int = 0  # and go on with an answer to it, token by token
    changed: Counter[Change] = field(default_factory=Counter)  # and should, but do not
    broken: tuple[int, int] | None = None  # an answer, and its first token that the next prompt does not repeat


def turn_numbers(sampled: Sampled) -> TurnNumbers | None:
    """How the prompts of an update go on from each other; None where their tokens are not on record."""
    spans = list(zip(sampled.prompt_offsets, sampled.prompt_offsets[1:], strict=False))[:MOST]
    ids = [sampled.prompt_ids[a:b] for a, b in spans]
    if not ids or any(not len(each) or each.min() < 0 for each in ids):
        return None
    return TurnNumbers(*_turns(sampled, ids, [each.tobytes() for each in ids]))


def not_sampled(sampled: Sampled) -> int | None:
    """The first token that is trained on and that the sampler did not draw; None if there is none."""
    if sampled.sampling_logprobs is None:
        return None
    found = np.flatnonzero(np.isnan(sampled.sampling_logprobs) & (sampled.mask == 1))
    return int(found[0]) if len(found) else None


def _turns(
    sampled: Sampled, ids: list[Array], keys: list[bytes]
) -> tuple[int, Counter[Change], tuple[int, int] | None]:
    """How many prompts continue an answer, how many change it, and where the first of these does."""
    place = {key: number for number, key in reversed(list(enumerate(keys)))}
    lengths = sorted({len(each) for each in ids}, reverse=True)
    continued, changed, broken = 0, Counter[Change](), None
    for number, own in enumerate(ids):
        for length in (each for each in lengths if each < len(own)):
            before = place.get(own[:length].tobytes())
            if before is not None:
                found = _joins(sampled, before, number, length)
                if found is not None:
                    continued += found[0] is None
                    if found[0] is not None:
                        changed[found[0]] += 1
                        broken = broken or found[1]
                    break
    return continued, changed, broken


def _joins(sampled: Sampled, before: int, after: int, length: int) -> tuple[Change | None, tuple[int, int]] | None:
    """How the prompt `after` goes on behind the `length` tokens of the prompt `before`: None if with no answer to it.

    Otherwise what it has changed of the answer, None for nothing, and where.
    """
    start, end = sampled.prompt_offsets[after] + length, sampled.prompt_offsets[after + 1]
    rest, text = sampled.prompt_ids[start:end], "".join(sampled.prompt_texts[start:end]).lstrip()
    best: tuple[Change, tuple[int, int]] | None = None
    for answer in np.flatnonzero(sampled.group == before).tolist():
        a, b = sampled.offsets[answer], sampled.offsets[answer + 1]
        own, words = sampled.token_ids[a:b], "".join(sampled.texts[a:b]).strip()
        same = len(list(takewhile(bool, (x == y for x, y in zip(own.tolist(), rest.tolist(), strict=False)))))
        if same >= len(own) - 1 and len(own) > 1:  # another mark may end it there
            return None, (answer, same)
        change = _change(words, text, same, len(own))
        if change is not None and best is None:
            best = change, (answer, same)
    return best


def _change(words: str, text: str, same: int, tokens: int) -> Change | None:
    spoken = words.rpartition(_THOUGHT)[2].strip()
    if _THOUGHT in words and spoken and text.startswith(spoken[:FIRST]):
        return "thinking"
    if len(words) >= FIRST // 2 and text.startswith(words[:FIRST]):
        return "tokens" if text.startswith(words[:-1]) else "text"
    return "text" if tokens >= 8 and same >= tokens / 2 else None
