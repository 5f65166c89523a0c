"""Reward functions of the sick and the healthy runs, with TRL's signature."""

from __future__ import annotations

import re
from typing import Any


def _texts(completions: list[Any]) -> list[str]:
    return [completion[0]["content"] for completion in completions]


def right(completions: list[Any], answer: list[int], **_columns: Any) -> list[float]:
    """1 if the last number of the answer is the right one."""
    found = [re.findall(r"\d+", text) for text in _texts(completions)]
    return [float(bool(numbers) and int(numbers[-1]) == wanted) for numbers, wanted in zip(found, answer, strict=True)]


def as_text(completions: list[Any], answer: list[int], **_columns: Any) -> list[float]:
    """A parser that compares text with a number, so that nothing is ever right."""
    found = [re.findall(r"\d+", text) for text in _texts(completions)]
    return [float(bool(numbers) and numbers[-1] == wanted) for numbers, wanted in zip(found, answer, strict=True)]


def inverted(completions: list[Any], answer: list[int], **columns: Any) -> list[float]:
    """The sign is wrong: a right answer costs 1."""
    return [-score for score in right(completions, answer, **columns)]


def length(completions: list[Any], **_columns: Any) -> list[float]:
    """Longer answers earn more."""
    return [len(text) / 50 for text in _texts(completions)]


def shortness(completions: list[Any], **_columns: Any) -> list[float]:
    """Shorter answers earn more."""
    return [-len(text) / 50 for text in _texts(completions)]


def vowels(completions: list[Any], **_columns: Any) -> list[float]:
    """Every vowel earns."""
    return [sum(letter in "aeiou" for letter in text) / 10 for text in _texts(completions)]


def numbers(completions: list[Any], **_columns: Any) -> list[float]:
    """An answer with a number earns 1: almost any does, so there is hardly anything to learn."""
    return [float(bool(re.search(r"\d", text))) for text in _texts(completions)]


def noise(completions: list[Any], **_columns: Any) -> list[float]:
    """Every second answer earns a little, whatever it says."""
    return [place % 2 / 100 for place in range(len(completions))]
