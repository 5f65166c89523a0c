"""Foreign text made safe to show: every character visible, none obeyed by the terminal."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

NEWLINE = "⏎"
NOTHING = "◦"
"""Stands for a token that adds no character of its own yet, such as the first half of an emoji."""
MARKS = 8
"""Accents and vowels that may stand on one letter: no script needs more, and a pile of them covers other lines."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_UNSEEN = re.compile(
    # Unicode's Default_Ignorable_Code_Point as far as Python calls it printable, and the dyes of emoji.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)
_HALF = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=16384)
def visible(text: str, spaces: bool = False) -> str:
    """`text` with control characters as symbols; with `spaces`, blanks as dots too.

    A newline becomes "⏎", an escape "␛"; what would reverse the line, dye the emoji before it or not be seen becomes
    "◦". A mark at the beginning stands on a "◌".
    """
    shown = one_by_one(text)
    if shown and _joins(shown[0]):
        shown = "◌" + shown
    return shown.replace(" ", "·") if spaces else shown


def visible_lines(text: str) -> str:
    """`text` with its line breaks, and all else that a terminal would obey as symbols."""
    return "\n".join(visible(line) for line in text.split("\n"))


def one_by_one(text: str) -> str:
    """`text` with a symbol in place of each character that a terminal would obey or hide, so that positions stay."""
    if text.isascii() and text.isprintable():
        return text
    shown, pile = [], 0
    for character in text:
        pile = pile + 1 if _joins(character) else 0
        shown.append(NOTHING if pile > MARKS else _symbol(character))
    return "".join(shown)


def whole(text: str) -> bool:
    """Whether `text` can be written as UTF-8: it has no half of a character, as JSON and YAML can spell one."""
    return text.isascii() or _HALF.search(text) is None


def harmless(text: str) -> bool:
    """Whether a terminal shows every character of `text` as it is; piles of marks are not looked for."""
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def visible_json(line: str) -> str:
    """A line of JSON that says the same, with what a terminal would obey or hide written as \\uXXXX."""
    shown = one_by_one(line)
    return line if shown == line else "".join(c if c == s else _escaped(c) for c, s in zip(line, shown, strict=True))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


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
    if _UNSEEN.match(character) or unicodedata.category(character) in _HIDDEN:
        return NOTHING
    return " " if character == "\N{NO-BREAK SPACE}" else character
