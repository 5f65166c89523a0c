"""The glossary: every word that the screen, the help and the lessons use, explained once.

The YAML files hold the entries, one file for each family; import this where a term is needed, because reading them
takes 10 ms. The registries explain statistics, metrics, settings and
algorithms; entries only point to them. An algorithm without a written entry gets one from the catalogue.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rlplay.algorithms.catalogue import PRESETS, Preset
from rlplay.search import plain, search
from rlplay.spelling import did_you_mean
from rlplay.trace.text import quote

_FAMILIES = ("frame", "family", "learning", "bounds", "reward_sources", "laboratory")
_SHOWN = {"trpo": ("trust-region", "The algorithm is TRPO")}
"""Moments of algorithms without a written entry."""


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One word of reinforcement learning on language models, in plain English.

    `see` is where the screen shows it live: a verb with its argument; the entry then also shows the formula and reading
    from there. `algorithm` is the preset with this name. `moment` is where a lesson shows what it means: the lesson,
    and the first words of the text that is on the screen then.
    """

    name: str
    text: str
    formula: str = ""
    aliases: tuple[str, ...] = ()
    see: tuple[str, Any] | None = None
    algorithm: str = ""
    moment: tuple[str, str] | None = None


def _family(name: str) -> list[Term]:
    return msgspec.yaml.decode((Path(__file__).parent / f"{name}.yaml").read_bytes(), type=list[Term])


def _of_algorithm(preset: Preset) -> Term:
    aliases = () if plain(preset.name) == plain(preset.title) else (preset.name,)
    see, moment = ("knobs", "algorithm"), _SHOWN.get(preset.name)
    return Term(preset.title, preset.changes, "", aliases, see, preset.name, moment)


_WRITTEN = [term for name in _FAMILIES for term in _family(name)]
_NAMED_AFTER = {term.algorithm for term in _WRITTEN}
_ALGORITHMS = [_of_algorithm(preset) for name, preset in PRESETS.items() if name not in _NAMED_AFTER]

TERMS: dict[str, Term] = {
    term.name: term for term in sorted([*_WRITTEN, *_ALGORITHMS], key=lambda term: plain(term.name))
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
