"""Searching entries by name and by meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Entry = TypeVar("Entry")


def plain(text: str) -> str:
    """`text` as the search compares it: without case, every dash a hyphen."""
    return text.casefold().replace("–", "-")


def search(
    typed: str, entries: Iterable[Entry], names: Callable[[Entry], Sequence[str]], text: Callable[[Entry], str]
) -> list[Entry]:
    """The `entries` that contain every word of `typed`, matches of the name first; all if `typed` is empty.

    `names` gives the names of an entry, the main one first, and `text` its text.
    """
    words = plain(typed).split()
    found = [(rank, entry) for entry in entries if (rank := _rank(words, names(entry), text(entry))) is not None]
    return [entry for _, entry in sorted(found, key=lambda each: each[0])]


def _rank(words: list[str], names: Sequence[str], text: str) -> int | None:
    """0 if the main name is exactly what was typed, up to 6 if only the text contains it; None if nothing does."""
    typed, known = " ".join(words), [plain(name) for name in names]
    tests = (
        known[0] == typed or not typed,
        typed in known,
        known[0].startswith(typed),
        all(_begins_in(word, known[:1]) for word in words),
        any(each.startswith(typed) for each in known),
        all(_begins_in(word, known) for word in words),
        all(_begins_in(word, (*known, plain(text))) for word in words),
    )
    return next((rank for rank, holds in enumerate(tests) if holds), None)


def _begins_in(word: str, texts: Sequence[str]) -> bool:
    """Whether a word of one of the texts begins with `word`."""
    return any(re.search(rf"(?:^|[\W_]){re.escape(word)}", text) for text in texts)
