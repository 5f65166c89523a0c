"""The glossary: every word that the screen, the help and the lessons use, explained once.

`TERMS` holds the entries by name. The registries explain statistics, metrics, settings and algorithms; entries only
point to them. An algorithm without a written entry gets one from the catalogue.
"""

from __future__ import annotations

from rlplay.algorithms.catalogue import PRESETS, Preset
from rlplay.glossary.bounds import BOUNDS
from rlplay.glossary.family import FAMILY
from rlplay.glossary.frame import FRAME
from rlplay.glossary.learning import LEARNING
from rlplay.glossary.moments import MOMENTS
from rlplay.glossary.reward_sources import REWARD_SOURCES
from rlplay.glossary.term import Term
from rlplay.search import plain, search
from rlplay.spelling import did_you_mean
from rlplay.trace.text import quote

__all__ = ["MOMENTS", "TERMS", "Term", "matching", "term_called"]


def _other_names(preset: Preset) -> tuple[str, ...]:
    return () if plain(preset.name) == plain(preset.title) else (preset.name,)


_WRITTEN = (*FRAME, *FAMILY, *LEARNING, *BOUNDS, *REWARD_SOURCES)
_NAMED_AFTER = {term.algorithm for term in _WRITTEN}
_ALGORITHMS = (
    Term(preset.title, preset.changes, "", _other_names(preset), ("knobs", "algorithm"), algorithm=name)
    for name, preset in PRESETS.items()
    if name not in _NAMED_AFTER
)

TERMS: dict[str, Term] = {
    term.name: term for term in sorted((*_WRITTEN, *_ALGORITHMS), key=lambda term: plain(term.name))
}
"""Every entry by name, in alphabetical order."""


def matching(typed: str) -> list[Term]:
    """The entries that contain every word of `typed`, matches of the name first; all if it is empty."""
    return search(typed, TERMS.values(), lambda term: (term.name, *term.aliases), lambda term: term.text)


def term_called(name: str) -> Term:
    """The entry with this name or alias. Raises ValueError, one line, if there is none."""
    known = {plain(called): term for term in TERMS.values() for called in (term.name, *term.aliases)}
    try:
        return known[plain(name)]
    except KeyError:
        raise ValueError(f"the glossary has no {quote(name)}{did_you_mean(name, list(TERMS))}") from None
