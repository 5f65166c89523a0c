"""Prompts of a library as the examples of a task."""

from __future__ import annotations

from collections.abc import Iterable

from rlplay.tasks.task import Example, heading

_HELD_OUT_FROM, _ONE_IN = 10, 10


def divided(examples: Iterable[Example]) -> tuple[list[Example], list[Example]]:
    """Prompts to train on, and the last tenth of ten or more, without those that are also trained on."""
    every = list(examples)
    kept = len(every) - (max(1, len(every) // _ONE_IN) if len(every) >= _HELD_OUT_FROM else 0)
    known = {heading(example) for example in every[:kept]}
    return every[:kept], [example for example in every[kept:] if heading(example) not in known]


def without_repeats(examples: Iterable[Example]) -> list[Example]:
    """The examples without those whose question has come before: small generators repeat themselves."""
    found = dict[str, Example]()
    for example in examples:
        found.setdefault(heading(example), example)
    return list(found.values())
