"""How often the right answer of a row stands in its prompt, at a place that a template gives it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rlplay.health.counts import GOLD_COLUMNS, values, whole
from rlplay.trace.records import Sampled

BEGIN, END, VALUE = "\x02", "\x03", "…"
"""How the begin and the end of a prompt and its row's value are written in a place."""
AROUND = range(3, 13)
"""Characters before and after a value that are the same in all prompts if a template puts it there; the more there are,
the better a reader finds it."""


@dataclass(frozen=True)
class GivenAnswers:
    """Of the prompts of an update, for one column; sums, so that updates add up."""

    rows: int
    within: int
    """Prompts that contain their own row's value, as a whole word or number."""
    others: int
    """Prompts that contain the next row's value, which is another one."""
    compared: int
    places: Counter[str] = field(default_factory=Counter)
    """By the characters before or after the value that its prompt has there alone: how many prompts."""

    def __add__(self, other: GivenAnswers) -> GivenAnswers:
        return GivenAnswers(
            self.rows + other.rows,
            self.within + other.within,
            self.others + other.others,
            self.compared + other.compared,
            self.places + other.places,
        )


def given_answers(sampled: Sampled) -> dict[str, GivenAnswers]:
    """By column that is named as the right answer."""
    said = [{n: v.strip().lower() for n, v in values(each).items() if n.lower() in GOLD_COLUMNS}
            for each in sampled.columns]  # fmt: skip
    found = {}
    for name in sorted({name for each in said for name in each}):
        rows = [(prompt.lower(), each[name]) for prompt, each in zip(sampled.prompts, said, strict=False)
                if name in each]  # fmt: skip
        found[name] = _given(rows)
    return found


def _given(rows: list[tuple[str, str]]) -> GivenAnswers:
    within, places = 0, Counter[str]()
    for prompt, value in rows:
        text = f"{BEGIN}{prompt}{END}"
        spans = [match.span() for match in whole(value).finditer(text)]
        within += bool(spans)
        before = {text[max(0, start - size) : start] for start, _ in spans for size in AROUND}
        after = {text[end : end + size] for _, end in spans for size in AROUND}
        places.update(f"{each}{VALUE}" for each in before if text.count(each) == 1)
        places.update(f"{VALUE}{each}" for each in after if text.count(each) == 1)
    pairs = [(prompt, other) for (prompt, value), (_, other) in zip(rows, rows[1:] + rows[:1], strict=True)
             if value != other]  # fmt: skip
    others = sum(whole(other).search(prompt) is not None for prompt, other in pairs)
    return GivenAnswers(len(rows), within, others, len(pairs), places)
