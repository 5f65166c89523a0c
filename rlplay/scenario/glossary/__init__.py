"""The glossary: every word that the screen, the help and the lessons use, explained once.

`TERMS` holds them by name. What a statistic, a metric, a setting or an algorithm means is said in its own registry
and only pointed to from here; algorithms without an entry of their own get one from theirs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlplay.scenario.algorithms import PRESETS, Preset
from rlplay.scenario.glossary.bounds import BOUNDS
from rlplay.scenario.glossary.family import FAMILY
from rlplay.scenario.glossary.frame import FRAME
from rlplay.scenario.glossary.learning import LEARNING
from rlplay.scenario.glossary.preferences import PREFERENCES
from rlplay.scenario.glossary.term import Term
from rlplay.scenario.spelling import closest

__all__ = ["TERMS", "Term", "matching", "term_called"]


def _plain(text: str) -> str:
    return text.casefold().replace("–", "-")


def _other_names(preset: Preset) -> tuple[str, ...]:
    return () if _plain(preset.name) == _plain(preset.title) else (preset.name,)


_WRITTEN = (*FRAME, *FAMILY, *LEARNING, *BOUNDS, *PREFERENCES)
_NAMED_AFTER = {term.algorithm for term in _WRITTEN}
_ALGORITHMS = (
    Term(preset.title, preset.changes, "", _other_names(preset), ("knobs", "algorithm"), algorithm=name)
    for name, preset in PRESETS.items()
    if name not in _NAMED_AFTER
)

TERMS: dict[str, Term] = {
    term.name: term for term in sorted((*_WRITTEN, *_ALGORITHMS), key=lambda term: _plain(term.name))
}
"""Every entry by its name, in the order of a dictionary."""


def matching(typed: str) -> list[Term]:
    """The entries in which every word of `typed` is found, those that are called so first; all if it is empty."""
    words = _plain(typed).split()
    found = [(rank, term) for term in TERMS.values() if (rank := _rank(term, words)) is not None]
    return [term for _, term in sorted(found, key=lambda entry: entry[0])]


def term_called(name: str) -> Term:
    """The entry with this name or alias. Raises ValueError, one line, if there is none."""
    known = {_plain(called): term for term in TERMS.values() for called in (term.name, *term.aliases)}
    try:
        return known[_plain(name)]
    except KeyError:
        raise ValueError(f"the glossary has no {name!r}{closest(name, list(TERMS))}") from None


def _rank(term: Term, words: list[str]) -> int | None:
    """0 for an entry called exactly so, up to 4 for one that only speaks of it; None for none."""
    typed = " ".join(words)
    called = [_plain(each) for each in (term.name, *term.aliases)]
    tests = (
        called[0] == typed or not typed,
        typed in called,
        any(each.startswith(typed) for each in called),
        all(_begins_in(word, called) for word in words),
        all(_begins_in(word, (*called, _plain(term.text))) for word in words),
    )
    return next((rank for rank, holds in enumerate(tests) if holds), None)


def _begins_in(word: str, texts: Sequence[str]) -> bool:
    """Whether a word of one of the texts begins with `word`."""
    return any(re.search(rf"(?:^|[\W_]){re.escape(word)}", text) for text in texts)
