"""Runs as the checks see them, written number by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

import msgspec

from rlplay.algorithms.settings import Settings
from rlplay.health.digest import AnswerExample, Digest, TokenPlace
from rlplay.health.finding import Evidence, Finding
from rlplay.trace.history import History
from tests.recorded import SETTINGS

PLACES = ("cut", "mark", "repeated", "longest", "mismatch", "moved", "example", "reference")
"""What a place of an update is of; its number here is the answer that the made-up place names."""


def digest_of(update: int, **fields: Any) -> Digest:
    """An update in which nothing is wrong, but for `fields`."""
    places = {name: TokenPlace(update, answer) for answer, name in enumerate(PLACES)}
    known: dict[str, Any] = {
        "finished": True, "broken": (), "answers": 16, "walks": False, "tokens": True, "prompts_known": True,
        "prompt_tokens": 40, "prompts_alike": (4, 0),
        "template_marks": 12, "long_answers": 16, "groups": 4, "cut": 0, "ends_known": True, "ended_earned": None,
        "cut_earned": None, "limit": 0, "scored": True, "reward": None, "best": 1.0, "silent": False, "longer": {},
        "gold": {}, "contained": {}, "empty": 0, "shift": 0.05, "repeats": 0.01, "mismatch": 1e-9, "apart": False,
        "broken_marks": {}, "openings": Counter(), "marks_within": Counter(), "tails": Counter(), "places": places,
        "examples": (AnswerExample(places["example"], "P", "A", 0.0, {}),),
    }  # fmt: skip
    return Digest(update=update, **known | fields)


def evidence(
    updates: int = 6, series: Mapping[str, Sequence[float]] | None = None, *, first: int = 1,
    settings: Mapping[str, Any] | None = None, ends: Mapping[int, str] | None = None, answers_known: bool = True,
    on_record: Container[str] = frozenset(Settings.__struct_fields__), source: str = "", **fields: Any,
) -> Evidence:  # fmt: skip
    """A run of so many updates from `first` on. The metrics of `series` have a value for each, of `updates` or fewer.

    Unless `answers_known` only they are on record, and no digest.

    A list among `fields` has a value for each digest, too; all else is the same in all of them.
    """
    numbers = range(first, first + updates)
    each = [
        {name: value[n] if isinstance(value, list) else value for name, value in fields.items()} for n in range(updates)
    ]
    points = sorted(
        (0, name, update, value)
        for name, values in (series or {}).items()
        for update, value in zip(numbers, values, strict=False)
    )
    chosen: Settings = msgspec.structs.replace(SETTINGS, **settings or {})
    digests = [digest_of(number, **own) for number, own in zip(numbers, each, strict=True) if answers_known]
    history = History.of(sorted(points, key=lambda point: point[2]), [])
    return Evidence(numbers[-1], numbers[0], digests, history, chosen, ends or {}, on_record, source)


def curves(updates: int, series: Mapping[str, Sequence[float]], source: str = "", **settings: Any) -> Evidence:
    """A run of which only metrics are on record, and no setting but `settings`."""
    return evidence(updates, series, settings=settings, on_record=settings, source=source, answers_known=False)


def seen_at(finding: Finding | None) -> tuple[int, str] | None:
    """The update that a finding points to, and what its place there is of; None if it points nowhere."""
    return None if finding is None or finding.place is None else (finding.place.update, PLACES[finding.place.answer])
