"""What tokens and other pieces of model text look like on the screen."""

from __future__ import annotations

import re
from functools import lru_cache

from rlplay.trace.text import NOTHING, visible

END = "∎"
TICK = "\0"
"""Stands for a backtick that is not the beginning or the end of a key's name."""

BY_KNOB = " (`k`)"
"""How to turn the knob just named; of no use in a recording."""

_SPECIAL = re.compile(r"<\|([^<>|\s]{1,40})\|>|</?s>|<(?:pad|eos|bos|unk)>", re.IGNORECASE)


def is_special(piece: str) -> bool:
    """Whether `piece` is one of the markers that templates are made of, such as <|end|>."""
    return _SPECIAL.fullmatch(piece) is not None


@lru_cache(maxsize=16384)
def token_text(text: str, piece: str, spaces: bool = False) -> str:
    """What one token of a completion shows: `text` is its share of the decoded text, `piece` the token alone."""
    if is_special(piece):
        return f"⟨{piece.strip('<|>/')}⟩" if spaces else END
    return visible(text, spaces) if text else NOTHING


def quoted(piece: str) -> str:
    """A token for a table: in quotes, so that its blanks show."""
    return piece if is_special(piece) else f'"{visible(piece)}"'


def literal(text: str) -> str:
    """Foreign text for a sentence in which backticks name keys: its own backticks name none."""
    return visible(text).replace("`", TICK)


def within(title: str) -> str:
    """A title inside a line: "Change in probability" begins small, "KL to reference" does not."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def without_knobs(text: str) -> str:
    """A sentence for where no knob turns, as in a recording: without the key that `BY_KNOB` names."""
    return text.replace(BY_KNOB, "")
