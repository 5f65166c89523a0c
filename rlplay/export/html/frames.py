"""What the page shows of one update: answers with their tokens and statistics, metrics, and the map of a world."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.answers import advantages
from rlplay.trace.lenses import LENSES, Lens, automatic
from rlplay.trace.records import Array
from rlplay.trace.text import visible
from rlplay.trace.update import Update
from rlplay.worlds.chart import chart
from rlplay.worlds.world import World, place

END = "∎"
CANDIDATES = 5
"""Candidates of a token that the page shows."""
Shown = dict[str, Any]
"""Part of the page's data, as JSON writes it."""


class Words:
    """Every text of the page's tokens once; the frames hold their numbers. `ends` are the texts that end an answer."""

    def __init__(self, ends: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._ends = frozenset(ends)
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of `text`, which is shown with control characters as symbols."""
        shown = END if text in self._ends else visible(text)
        if shown not in self._numbers:
            self._numbers[shown] = len(self.texts)
            self.texts.append(shown)
        return self._numbers[shown]


def few(values: Iterable[float], digits: int = 3) -> list[float | None]:
    """Values in so many significant digits, None for what is no number."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


def described(lens: Lens) -> Shown:
    """What the page says of a statistic."""
    return {
        "title": lens.title, "reading": lens.reading, "unit": lens.unit,
        "low": lens.low, "high": lens.high, "twoSided": lens.two_sided, "finest": lens.finest,
    }  # fmt: skip


def frame(update: Update, settings: Settings, world: World | None, words: Words, room: int) -> Shown:
    """An update as the page shows it: whole groups, at least one, and no more than have `room` tokens together."""
    found: Shown = {"update": update.number, "lens": _lens_of(update, settings)}
    if update.sampled is None:
        return found
    rows = _rows(update, room)
    lenses = {name: lens.of(settings) for name, lens in LENSES.items()}
    values = {name: array for name, lens in lenses.items() if (array := lens.values(update)) is not None}
    known = {name: array for name, array in values.items() if not np.isnan(array).all()}
    found["lenses"] = {name: described(lenses[name]) for name in known}
    found["prompts"] = [visible(text) for text in update.sampled.prompts]
    found["of"] = update.completions
    found["answers"] = [_answer(update, row, known, words) for row in rows]
    if world is not None:
        found["map"] = _map(world, update, rows)
    return found


def _lens_of(update: Update, settings: Settings) -> str:
    return automatic("after", settings) if update.new_logprobs() is not None else "advantages"


def _rows(update: Update, room: int) -> list[int]:
    sampled = update.sampled
    assert sampled is not None
    sizes = np.diff(sampled.offsets)
    kept: list[int] = []
    for group in dict.fromkeys(sampled.group.tolist()):
        rows = np.flatnonzero(sampled.group == group).tolist()
        room -= int(sizes[rows].sum())
        if kept and room < 0:
            break
        kept += rows
    return kept


def _answer(update: Update, row: int, values: Mapping[str, Array], words: Words) -> Shown:
    sampled, scored = update.sampled, update.scored
    assert sampled is not None
    span = slice(int(sampled.offsets[row]), int(sampled.offsets[row + 1]))
    advantage = advantages(update)
    return {
        "group": int(sampled.group[row]),
        "reward": None if scored is None or scored.roles else few([float(scored.rewards[row])])[0],
        "role": scored.roles[row] if scored is not None and scored.roles else "",
        "advantage": None if advantage is None else few([float(advantage[row])])[0],
        "cut": bool(sampled.truncated[row]),
        "tokens": [words.number(text) for text in sampled.texts[span]],
        "own": sampled.mask[span].astype(int).tolist(),
        "values": {name: few(array[span].tolist()) for name, array in values.items()},
        "candidates": [_candidates(update, token, words) for token in range(span.start, span.stop)],
    }


def _candidates(update: Update, token: int, words: Words) -> list[list[Any]]:
    """Rows of text, probability before and after the update, whether it was written: the likeliest first."""
    sampled, finished = update.sampled, update.finished
    assert sampled is not None
    chosen = int(sampled.token_ids[token])
    ids = sampled.top_ids[token].tolist()
    before = dict(zip(ids, np.exp(sampled.top_logprobs[token]).tolist(), strict=True))
    before.setdefault(chosen, math.exp(sampled.old_logprobs[token]))
    after: dict[int, float] = {}
    texts = dict(sampled.pieces)
    if finished is not None and len(finished.rows) == update.completions:
        after = dict(zip(ids, np.exp(finished.top_logprobs[token]).tolist(), strict=False))
        after.setdefault(chosen, math.exp(finished.logprobs[token]))
        if finished.favourite_ids is not None and finished.favourite_logprobs is not None:
            favourite = int(finished.favourite_ids[token])
            texts |= finished.pieces
            after.setdefault(favourite, math.exp(finished.favourite_logprobs[token]))
    listed = sorted({*before, *after}, key=lambda each: -max(before.get(each, 0), after.get(each, 0)))
    top = listed[:CANDIDATES] if chosen in listed[:CANDIDATES] else [*listed[: CANDIDATES - 1], chosen]
    return [
        [
            words.number(texts.get(each, "")),
            *few([before.get(each, math.nan), after.get(each, math.nan)]),
            each == chosen,
        ]
        for each in top
        if each == chosen or max(before.get(each, 0), after.get(each, 0)) >= 0.001
    ]


def _map(world: World, update: Update, rows: Iterable[int]) -> Shown:
    """The squares with their moves' newest probabilities, values and visits, and the paths of the answers `rows`."""
    found = chart(world, update)
    squares = [dict(_square(world, name, square)) for name, square in found.squares.items()]
    return {"squares": squares, "paths": [found.paths.get(row, []) for row in rows]}


def _square(world: World, name: str, square: Any) -> Iterator[tuple[str, Any]]:
    yield "name", name
    if not world.arms:
        yield "at", place(name)
    yield "moves", None if square.policy is None else dict(zip(square.policy, few(square.policy.values()), strict=True))
    yield "value", None if square.value is None else few([square.value])[0]
    yield "visits", square.visits


def board(world: World) -> Shown:
    """The drawing of a world: a map's rows of kinds with its rewards, or the rewards of a bandit's arms."""
    return {"rows": list(world.map), "arms": dict(world.arms), "moves": list(world.actions)}
