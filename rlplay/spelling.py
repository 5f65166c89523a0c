"""Suggestions for misspelt words."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

_MOST_LISTED = 50


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word closest to `word`: one that starts with it, else a similar one, else None."""
    longer = [other for other in known if word and other.startswith(word)]
    return next(iter(longer or difflib.get_close_matches(word, known, n=1)), None)


def similar(word: str, known: Sequence[str]) -> list[str]:
    """The three known words closest to `word`, those that start with it first."""
    ranked = difflib.get_close_matches(word, known, n=len(known), cutoff=0.0)
    return sorted(ranked, key=lambda other: not (word and other.startswith(word)))[:3]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """The end of an error message: `; did you mean 'x'?`, or a list of the known words if none is close.

    A list too long for a message is left out.
    """
    if near := nearest(word, known):
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(known)}" if len(known) <= _MOST_LISTED else ""
