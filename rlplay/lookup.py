"""Finding an entry by what is typed of its name or its meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Entry = TypeVar("Entry")


def plain(text: str) -> str:
    """As it is compared: without case, every dash a hyphen."""
    return text.casefold().replace("–", "-")


def fitting(
    typed: str, entries: Iterable[Entry], names: Callable[[Entry], Sequence[str]], text: Callable[[Entry], str]
) -> list[Entry]:
    """The `entries` in which every word of `typed` is found, those that are called so first; all if it is empty.

    `names` are what an entry is called, the proper name first, and `text` is what it says.
    """
    words = plain(typed).split()
    found = [(rank, entry) for entry in entries if (rank := _rank(words, names(entry), text(entry))) is not None]
    return [entry for _, entry in sorted(found, key=lambda each: each[0])]


def _rank(words: list[str], names: Sequence[str], text: str) -> int | None:
    """0 for an entry called exactly so, up to 6 for one that only speaks of it; None for none."""
    typed, called = " ".join(words), [plain(name) for name in names]
    tests = (
        called[0] == typed or not typed,
        typed in called,
        called[0].startswith(typed),
        all(_begins_in(word, called[:1]) for word in words),
        any(each.startswith(typed) for each in called),
        all(_begins_in(word, called) for word in words),
        all(_begins_in(word, (*called, plain(text))) for word in words),
    )
    return next((rank for rank, holds in enumerate(tests) if holds), None)


def _begins_in(word: str, texts: Sequence[str]) -> bool:
    """Whether a word of one of the texts begins with `word`."""
    return any(re.search(rf"(?:^|[\W_]){re.escape(word)}", text) for text in texts)
