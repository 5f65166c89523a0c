"""How the screen shows tokens and other model text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby
from typing import Any

from rlplay.trace.records import Sampled
from rlplay.trace.text import NOTHING, visible

END = "∎"
TICK = "\0"
"""Replaces a backtick that does not mark a key."""

BY_KNOB = " (`k`)"
"""The key that changes the setting just named; left out in a recording."""

_SPECIAL = re.compile(r"<\|([^<>|\s]{1,40})\|>|</?s>|<(?:pad|eos|bos|unk)>", re.IGNORECASE)


def is_special(piece: str) -> bool:
    """Whether `piece` is a special token of a template, such as <|end|>."""
    return _SPECIAL.fullmatch(piece) is not None


@lru_cache(maxsize=16384)
def token_text(text: str, piece: str, spaces: bool = False) -> str:
    """The text shown for a token: `text` is its part of the decoded completion, `piece` the token decoded alone."""
    if is_special(piece):
        return f"⟨{piece.strip('<|>/')}⟩" if spaces else END
    return visible(text, spaces) if text else NOTHING


def turn_marks(sampled: Sampled, completion: int) -> dict[int, str]:
    """What stands for the marks of the chat template around what others wrote in an answer, by token of the batch.

    The model's last mark before their turn is an arrow, and a dot ends their turn: "16 → Lower. · 6". Nothing else is
    cut: each mark keeps a cell, so that the cursor can be on it.
    """
    start, end = (int(each) for each in sampled.offsets[completion : completion + 2])
    shown: dict[int, str] = {}
    for others, run in groupby(range(start, end), lambda token: not sampled.mask[token]):
        tokens = list(run)
        if not others:
            continue
        special = [is_special(sampled.pieces.get(int(sampled.token_ids[token]), "")) for token in tokens]
        words = [at for at, mark in enumerate(special) if not mark] or [0]
        shown |= {token: " " for token, mark in zip(tokens, special, strict=True) if mark}
        if words[-1] + 1 < len(tokens):
            shown[tokens[words[-1] + 1]] = " · " if words[-1] + 2 == len(tokens) else " ·"
        before = tokens[0] - 1
        if before >= start and is_special(sampled.pieces.get(int(sampled.token_ids[before]), "")):
            shown[before] = " →"
        elif words[0]:
            shown[tokens[0]] = " → "
    return shown


def quoted(piece: str) -> str:
    """A token for a table, in quotes to show its blanks."""
    return piece if is_special(piece) else f'"{visible(piece)}"'


def column_text(value: Any) -> str:
    """A value of a dataset's column: a list as its items, a mapping as names with values."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {column_text(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(column_text, value))
    return str(value)


def literal(text: str) -> str:
    """Foreign text for a sentence in which backticks mark keys: its own backticks are replaced."""
    return visible(text).replace("`", TICK)


def within(title: str) -> str:
    """A title inside a sentence: "Change in probability" becomes lower case, "KL to reference" does not."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def without_knobs(text: str) -> str:
    """A sentence for a recording, where settings cannot change: without the key of `BY_KNOB`."""
    return text.replace(BY_KNOB, "")
