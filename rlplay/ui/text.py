"""Model text made safe to draw: every character visible, none obeyed by the terminal."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

NEWLINE = "⏎"
NOTHING = "◦"
"""Stands for a token that adds no character of its own yet, such as the first half of an emoji."""
END = "∎"

_SPECIAL = re.compile(r"<\|([^<>|\s]{1,40})\|>|</?s>|<(?:pad|eos|bos|unk)>", re.IGNORECASE)
_HIDDEN = {"Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def is_special(piece: str) -> bool:
    """Whether `piece` is one of the markers that templates are made of, such as <|end|>."""
    return _SPECIAL.fullmatch(piece) is not None


@lru_cache(maxsize=16384)
def visible(text: str, spaces: bool = False) -> str:
    """`text` with control characters as symbols; with `spaces`, blanks as dots too.

    A newline becomes "⏎", an escape "␛"; marks that would join the character before, or reverse the line, become "◦".
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·") if spaces else text
    shown = "".join(_symbol(character) for character in text)
    if shown and unicodedata.combining(shown[0]):
        shown = "◌" + shown
    return shown.replace(" ", "·") if spaces else shown


def _symbol(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return NEWLINE
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0 or 0xFE00 <= code <= 0xFE0F:
        return NOTHING
    if unicodedata.category(character) in _HIDDEN:
        return NOTHING
    return " " if character == "\N{NO-BREAK SPACE}" else character


def token_text(text: str, piece: str, spaces: bool = False) -> str:
    """What one token of a completion shows: `text` is its share of the decoded text, `piece` the token alone."""
    if is_special(piece):
        return f"⟨{piece.strip('<|>/')}⟩" if spaces else END
    return visible(text, spaces) if text else NOTHING


def quoted(piece: str) -> str:
    """A token for a table: in quotes, so that its blanks show."""
    return piece if is_special(piece) else f'"{visible(piece)}"'
