"""The known word somebody probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_READ = 50


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word closest to `word`: one that goes on from it, else a similar one, else None."""
    longer = [other for other in known if word and other.startswith(word)]
    return next(iter(longer or difflib.get_close_matches(word, known, n=1)), None)


def similar(word: str, known: Sequence[str], count: int = 3) -> list[str]:
    """The `count` known words closest to `word`, those that go on from it first."""
    ranked = difflib.get_close_matches(word, known, n=len(known), cutoff=0.0)
    return sorted(ranked, key=lambda other: not (word and other.startswith(word)))[:count]


def closest(word: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?`, or the known words when none is close: the end of an error message.

    More words than one reads in a message are left out.
    """
    if near := nearest(word, known):
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(known)}" if len(known) <= _READ else ""
