"""Rewards that check a number: the strict verifier, and a loose one that can be gamed."""

from __future__ import annotations

from typing import Any

from rlplay.tasks.numerals import last_number, numbers_in
from rlplay.tasks.task import Completion, completion_text


def correct(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    answer: list[int],
    **_columns: Any,
) -> list[float | None]:
    """1.0 if the last number in the completion equals `answer`, else 0.0; no number at all is 0.0."""
    return [
        float(last_number(completion_text(completion)) == right)
        for completion, right in zip(completions, answer, strict=True)
    ]


def mentioned(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    answer: list[int],
    **_columns: Any,
) -> list[float | None]:
    """1.0 if `answer` is any of the numbers in the completion, else 0.0.

    A verifier with a hole in it: a long list of numbers earns as much as the right answer.
    """
    return [
        float(right in numbers_in(completion_text(completion)))
        for completion, right in zip(completions, answer, strict=True)
    ]
