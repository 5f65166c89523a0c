"""Makes foreign text safe to show: every character is visible, and the terminal obeys none."""

from __future__ import annotations

import os
import re
import unicodedata
from functools import lru_cache

NEWLINE = "⏎"
NOTHING = "◦"
"""Shown for a token that does not complete a character, such as the first half of an emoji."""
MARKS = 8
"""The most combining marks on one letter: no script needs more, and a pile of them covers other lines."""

QUOTED = 80
"""The most characters of a value that an error quotes."""
_LONG_WORD = re.compile(rf"\S{{{QUOTED + 1},}}")
_LONG_QUOTE = re.compile(rf"(?<!\w)'[^']{{{QUOTED - 1},}}'(?!\w)|(?<=extra argument )\(.{{{QUOTED - 1},}}\)")
"""As click quotes values."""

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_UNSEEN = re.compile(
    # Unicode's Default_Ignorable_Code_Point where Python calls it printable, and the skin tones of emoji.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U0001f3fb-\U0001f3ff\U000e0100-\U000e01ef]"
)
_HALF = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=16384)
def visible(text: str, spaces: bool = False) -> str:
    """`text` with control characters as symbols; with `spaces`, also blanks as dots.

    A newline becomes "⏎", an escape "␛". Characters that would reverse the line, colour the emoji before them or stay
    invisible become "◦". A combining mark at the beginning gets a "◌" under it.
    """
    shown = one_by_one(text)
    if shown and _joins(shown[0]):
        shown = "◌" + shown
    return shown.replace(" ", "·") if spaces else shown


def visible_lines(text: str) -> str:
    """`text` with its line breaks; everything else that a terminal would obey becomes a symbol."""
    return "\n".join(visible(line) for line in text.split("\n"))


def one_by_one(text: str) -> str:
    """`text` with one symbol for each character that a terminal would obey or hide, so that positions stay the same."""
    if text.isascii() and text.isprintable():
        return text
    shown, pile = [], 0
    for character in text:
        pile = pile + 1 if _joins(character) else 0
        shown.append(NOTHING if pile > MARKS else _symbol(character))
    return "".join(shown)


def quote(value: object) -> str:
    """A value that somebody else wrote, as an error quotes it: as Python writes it, in `QUOTED` characters at most."""
    return brief(repr(value))


def brief(text: str) -> str:
    """`text` in `QUOTED` characters at most: of a longer one, the beginning and the end."""
    if len(text) <= QUOTED:
        return text
    end = QUOTED // 4
    return f"{text[: QUOTED - end - 1]}…{text[-end:]}"


def brief_path(path: str) -> str:
    """A path as an error names it: whole where its folder is there, else `brief`."""
    folder, _, name = path.rpartition("/")
    return path if len(name) <= QUOTED and os.path.isdir(folder) else brief(path)


def brief_quotes(text: str) -> str:
    """A message of somebody else's, with every value that it quotes `brief`; paths as in `brief_path`."""
    return _LONG_QUOTE.sub(_brief_quote, text)


def _brief_quote(quoted: re.Match[str]) -> str:
    inner = quoted[0][1:-1]
    return quoted[0] if brief_path(inner) == inner else brief(quoted[0])


def brief_words(text: str) -> str:
    """A message of somebody else's, with every word of it `brief`: it may quote a value of any length."""
    return _LONG_WORD.sub(lambda word: brief(word[0]), text)


def whole(text: str) -> bool:
    """Whether `text` can be encoded as UTF-8: it contains no lone surrogate, which JSON and YAML can express."""
    return text.isascii() or _HALF.search(text) is None


def harmless(text: str) -> bool:
    """Whether a terminal shows every character of `text` unchanged; this does not look for piles of marks."""
    return text.isprintable() and (text.isascii() or _UNSEEN.search(text) is None)


def visible_json(line: str) -> str:
    """An equivalent line of JSON, with \\uXXXX for characters that a terminal would obey or hide."""
    shown = one_by_one(line)
    return line if shown == line else "".join(c if c == s else _escaped(c) for c, s in zip(line, shown, strict=True))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _joins(character: str) -> bool:
    """Whether a character combines with the one before: accents, and the vowels and endings of Korean syllables."""
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
