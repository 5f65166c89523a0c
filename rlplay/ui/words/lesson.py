"""What a lesson says of its own accord: the verdict on a prediction, and where it is."""

from __future__ import annotations

from rlplay.scenario.script import Ask

Place = tuple[int, str]
"""The number of finished updates, and the current or next phase."""


def verdict(asked: Ask, choice: int | None) -> str:
    """Answer a question that the user predicted with `choice`, or not at all."""
    answer = f"{asked.choices[asked.answer]}. {asked.because}"
    if choice is None:
        return f"Answer: {answer}"
    return f"✓ Right: {answer}" if choice == asked.answer else f"✗ Not quite: {answer}"


def where(place: Place) -> str:
    """Describe a place in words."""
    update, phase = place
    if phase == "sample":
        return f"after update {update}" if update else "at the start"
    return f"in update {update + 1}, before {phase.upper()}"


def reading_time(text: str) -> float:
    """Seconds that `text` takes to read."""
    return max(3.0, len(text) / 18)
