"""Rewards that check numbers: the strict verifier, a loose one that can be gamed, and one for the steps."""

from __future__ import annotations

import re
from typing import Any

from rlplay.tasks.numerals import last_number, numbers_in
from rlplay.tasks.task import Completion, Steps, completion_text

_EQUATION = re.compile(r"\d+[-+*]\d+=\d+")


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


def shown_steps(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    steps: list[list[str]],
    **_columns: Any,
) -> list[float | None]:
    """The share of the right `steps`, such as `2*3=6`, that the completion contains as written, in [0, 1].

    The simplest process reward: it pays for the steps, whatever the final answer.
    """
    return [
        sum(_contains(step, completion_text(completion)) for step in wanted) / len(wanted)
        for completion, wanted in zip(completions, steps, strict=True)
    ]


def worked(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    steps: list[list[str]],
    **_columns: Any,
) -> list[Steps | float | None]:
    """A score for each equation that a completion writes: 1/len(steps) for the next right step, 0 for any other.

    Each score comes with the number of characters up to the end of its equation, where a process reward arrives.
    """
    scored: list[Steps | float | None] = []
    for completion, wanted in zip(completions, steps, strict=True):
        left, found = list(wanted), Steps()
        for equation in _EQUATION.finditer(completion_text(completion)):
            right = bool(left) and equation.group() == left[0]
            found.append((equation.end(), 1 / len(wanted) if right else 0.0))
            left = left[1:] if right else left
        scored.append(found)
    return scored


def _contains(step: str, text: str) -> bool:
    """Whether `step` is in `text` with no digit at either end of it: `2*3=6` is not in `12*3=60`."""
    return re.search(rf"(?<![0-9]){re.escape(step)}(?![0-9])", text) is not None
