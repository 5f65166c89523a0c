"""Finding answers and tokens: by their numbers, as in `reward<0.5 length>20` or `entropy > 1`, or by their text.

A condition on an answer (its reward, a part of it, its advantage, its length, a column of its prompt) keeps answers.
Columns also compare with words, as in `answer=30 topic=addition`. A condition on a token
(any statistic of `lenses.py`, by name, symbol or alias) keeps tokens and the answers that contain them. All conditions
must hold. `ratio 0.8..1.2 A 0..` is a box of the pull map, with its ratios; an end without a number is open. The word
`clipped` alone is also a condition: clipped up (▲) or down (▼). Anything that does not begin like a
comparison, or is in quotes, is text to look for.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.trace.answers import OF_ANSWERS, columns, measures
from rlplay.trace.lenses import LENSES
from rlplay.trace.pulls import PlaneBox, box, pulls
from rlplay.trace.records import Array, Sampled
from rlplay.trace.update import Update

ALIASES = {
    "ratio": "importance_ratio",
    "kl": "ref_kl",
    "value": "values",
    "return": "returns",
    "clip": "clip_state",
    "change": "prob_delta",
}
"""Short names for statistics."""


def _equal(values: Any, number: float) -> Any:
    return np.isclose(values, number, rtol=1e-5, atol=1e-8)


_RELATIONS: dict[str, Callable[[Any, float], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": _equal,
    "!=": lambda values, number: ~_equal(values, number),
}
CLIPPED = "clipped"
"""Matches every token whose gradient clipping made zero, on either side."""
_SPELLINGS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-"}
_NAME, _RELATION = r"[^\W\d]\w*", r"<=|>=|!=|=|<|>"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?=[\s,]|$)"
_WORD = r'"[^"]*"|[^\s,<>=!"]+(?=[\s,]|$)'
_IS_WORD = re.compile(rf"({_NAME})\s*(!=|=)\s*({_WORD})[\s,]*(?:and\s+)?", re.IGNORECASE)
_CONDITION = re.compile(rf"({_NAME})\s*({_RELATION})\s*({_NUMBER})[\s,]*(?:and\s+)?", re.IGNORECASE)
_ALONE = re.compile(rf"\b{CLIPPED}\b(?=[\s,]|$)(?!\s*(?:{_RELATION}))", re.IGNORECASE)
_BEGINS = re.compile(rf"({_NAME})\s*({_RELATION})")


@dataclass(frozen=True)
class Condition:
    """One comparison; `name` is a number of answers, a lens, or a column, which may also be compared with a word."""

    name: str
    relation: str
    number: float | str

    def holds(self, values: Array) -> Array:
        """Where it holds, bool; False where there is no number."""
        if isinstance(self.number, str):
            return np.zeros(len(values), dtype=bool)
        with np.errstate(invalid="ignore"):
            return np.asarray(_RELATIONS[self.relation](values, self.number) & ~np.isnan(values))

    def holds_for(self, column: Sequence[Any]) -> Array:
        """Where it holds for a column's values, bool; as text without regard to case, or as numbers."""
        if isinstance(self.number, str):
            same = np.array([str(value).casefold() == self.number.casefold() for value in column], dtype=bool)
            return same if self.relation == "=" else ~same
        return self.holds(np.array([_number(value) for value in column], dtype=np.float64))


@dataclass(frozen=True)
class Query:
    """What to look for: conditions, text, or a box of the pull map."""

    typed: str
    conditions: tuple[Condition, ...] = ()
    text: str = ""
    box: PlaneBox | None = None


@dataclass(frozen=True)
class Found:
    """The matches: bool [N] over answers and [T] over tokens, None if no condition was on tokens.

    `stops` [T] marks the tokens to go to; of a text, only its first token.
    """

    answers: Array
    tokens: Array | None = None
    stops: Array | None = None


def parse(typed: str, words_for: Collection[str] = ()) -> Query | None:
    """The query in `typed`; None if it is empty. The columns `words_for` may be compared with words.

    Raises ValueError, one line, for an invalid comparison.
    """
    typed = " ".join(typed.split())
    plain = typed
    for spelling, sign in _SPELLINGS.items():
        plain = plain.replace(spelling, sign)
    if not typed:
        return None
    if (boxed := box(plain)) is not None:
        return Query(typed, box=boxed)
    if typed[0] != '"':
        plain = _ALONE.sub("clip!=0", plain)
    if not _BEGINS.match(plain):
        return Query(typed, text=typed.strip('"') if len(typed) > 2 and typed[0] == typed[-1] == '"' else typed)
    conditions, at = [], 0
    while at < len(plain):
        found, word = _CONDITION.match(plain, at), _IS_WORD.match(plain, at)
        if found is None and word is not None and word[1] in words_for:
            conditions.append(Condition(word[1], word[2], word[3].strip('"')))
            at = word.end()
            continue
        if found is None:
            raise ValueError(f"'{plain[at:]}' is not a comparison; write one like reward<0.5, and text in quotes")
        conditions.append(Condition(_registry_name(found[1]), found[2], float(found[3])))
        at = found.end()
    return Query(typed, tuple(conditions))


def names(update: Update | None) -> list[str]:
    """The names for conditions: of answers, of columns, then of tokens, each by its alias if it has one."""
    aliases = {name: alias for alias, name in ALIASES.items()}
    of_answers = [*OF_ANSWERS, *(name for name in measures(update) if name not in OF_ANSWERS)]
    of_answers += [name for name in columns(update) if name not in (*of_answers, *LENSES, *ALIASES)]
    there = (name for name, lens in LENSES.items() if not lens.special or (update and lens.values(update) is not None))
    return [*of_answers, *(aliases.get(name, name) for name in there if name not in of_answers)]


def unknown(query: Query, update: Update | None, parts: Sequence[str] = ()) -> str | None:
    """The first unknown name in `query`: not in `update` and not among the `parts` of earlier updates."""
    known = {*OF_ANSWERS, *LENSES, *measures(update), *columns(update), *parts}
    return next((condition.name for condition in query.conditions if condition.name not in known), None)


def find(query: Query, update: Update) -> Found:
    """The answers and tokens of `update` that match; a number that is not computed yet matches nothing."""
    sampled = update.sampled
    assert sampled is not None
    if query.text:
        return _find_text(query.text, sampled)
    numbers, of_prompts = measures(update), columns(update)
    answers, tokens = np.ones(update.completions, dtype=bool), None if query.box is None else _boxed(query.box, update)
    for condition in query.conditions:
        if condition.name in LENSES and condition.name not in numbers:
            values = LENSES[condition.name].values(update)
            fits = np.zeros(update.tokens, dtype=bool) if values is None else condition.holds(values)
            tokens = fits & (sampled.mask == 1) & (True if tokens is None else tokens)
        elif condition.name in of_prompts and condition.name not in numbers:
            answers &= condition.holds_for(of_prompts[condition.name])
        else:
            values = numbers.get(condition.name)
            answers &= False if values is None else condition.holds(values)
    if tokens is not None:
        owner = np.repeat(np.arange(update.completions), np.diff(sampled.offsets))
        tokens &= answers[owner]
        answers = np.bincount(owner[tokens], minlength=update.completions) > 0
    return Found(answers, tokens, tokens)


def _boxed(box: PlaneBox, update: Update) -> Array:
    """The tokens whose dots on the pull map are in a box, bool [T]; none before there are dots."""
    tokens, found = np.zeros(update.tokens, dtype=bool), pulls(update)
    if found is not None:
        tokens[found.tokens[box.holds(found)]] = True
    return tokens


def _find_text(text: str, sampled: Sampled) -> Found:
    """The tokens of each occurrence of `text`, and the answers that contain it, or whose prompt does; ignores case."""
    pattern = re.compile(re.escape(text), re.IGNORECASE)
    in_prompt = np.array([pattern.search(prompt) is not None for prompt in sampled.prompts], dtype=bool)
    answers = in_prompt[sampled.group]
    ends = np.cumsum(np.fromiter(map(len, sampled.texts), dtype=np.int64, count=len(sampled.texts)))
    hits: list[tuple[int, int]] = []  # the first and the last character of each, counted over all answers
    for completion, (start, end) in enumerate(zip(sampled.offsets[:-1], sampled.offsets[1:], strict=True)):
        before = int(ends[start - 1]) if start else 0
        found = list(pattern.finditer("".join(sampled.texts[start:end])))
        hits += [(before + hit.start(), before + hit.end() - 1) for hit in found]
        answers[completion] |= bool(found)
    first, last = np.searchsorted(ends, np.array(hits, dtype=np.int64).reshape(-1, 2), side="right").T
    stops = np.zeros(len(ends), dtype=bool)
    stops[first] = True
    opened = np.bincount(first, minlength=len(ends) + 1) - np.bincount(last + 1, minlength=len(ends) + 1)
    return Found(answers, np.cumsum(opened)[: len(ends)] > 0, stops)


def _number(value: Any) -> float:
    """A column's value as a number; NaN if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def _registry_name(name: str) -> str:
    """The registry's name for a name, alias or symbol."""
    symbols = {lens.symbol: lens.name for lens in LENSES.values()}
    return ALIASES.get(name.lower()) or symbols.get(name) or (name.lower() if name.lower() in LENSES else name)
