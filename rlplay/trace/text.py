"""Foreign text made safe to show: every character visible, none obeyed by the terminal."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

NEWLINE = "⏎"
NOTHING = "◦"
"""Stands for a token that adds no character of its own yet, such as the first half of an emoji."""

_FILLERS = "\u3164\uffa0"
_HIDDEN = {"Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@lru_cache(maxsize=16384)
def visible(text: str, spaces: bool = False) -> str:
    """`text` with control characters as symbols; with `spaces`, blanks as dots too.

    A newline becomes "⏎", an escape "␛"; what would reverse the line, or dye the emoji before it, becomes "◦". A mark
    at the beginning stands on a "◌".
    """
    if text.isascii() and text.isprintable():
        return text.replace(" ", "·") if spaces else text
    shown = "".join(_symbol(character) for character in text)
    if shown and _joins(shown[0]):
        shown = "◌" + shown
    return shown.replace(" ", "·") if spaces else shown


def visible_lines(text: str) -> str:
    """`text` with its line breaks, and all else that a terminal would obey as symbols."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _joins(character: str) -> bool:
    """Whether it takes no place of its own: accents and the vowels and endings of Korean syllables."""
    return (
        unicodedata.category(character).startswith("M")
        or "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7fb"
    )


def _symbol(character: str) -> str:
    code = ord(character)
    if character == "\n":
        return NEWLINE
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0x80 <= code < 0xA0 or 0xFE00 <= code <= 0xFE0F or 0x1F3FB <= code <= 0x1F3FF or character in _FILLERS:
        return NOTHING
    if unicodedata.category(character) in _HIDDEN:
        return NOTHING
    return " " if character == "\N{NO-BREAK SPACE}" else character
