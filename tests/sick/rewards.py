"""Reward functions of the sick and the healthy runs, with TRL's signature."""

from __future__ import annotations

import re
import zlib
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


def always(completions: list[Any], **_columns: Any) -> list[float]:
    """A pattern that matches the empty text, so that every answer earns 1."""
    return [float(re.search(r"\d*", text) is not None) for text in _texts(completions)]


def tagged(completions: list[Any], answer: list[int], **_columns: Any) -> list[float]:
    """1 for the right number in tags, which the model has never seen."""
    found = [re.search(r"<answer>(\d+)</answer>", text) for text in _texts(completions)]
    return [float(bool(each) and int(each[1]) == wanted) for each, wanted in zip(found, answer, strict=True)]


def of_its_kind(completions: list[Any], kind: list[str], **_columns: Any) -> list[float]:
    """Easy questions ask for a number, which nearly all answers have, hard ones for a word that none has."""
    return [float(bool(re.search(r"\d" if each == "easy" else "quixotic", text)))
            for text, each in zip(_texts(completions), kind, strict=True)]  # fmt: skip


def hundredfold(completions: list[Any], answer: list[int], **columns: Any) -> list[float]:
    """The right number, but one answer in 250 has a score out of 100 that is taken for one out of 1."""
    scores = right(completions, answer, **columns)
    marks = [f"{place} {wanted} {sum(scores)} {text}" for place, (wanted, text) in
             enumerate(zip(answer, _texts(completions), strict=True))]  # fmt: skip
    return [100.0 if zlib.crc32(m.encode()) % 250 == 0 else score for m, score in zip(marks, scores, strict=True)]


def generous(completions: list[Any], answer: list[int], **columns: Any) -> list[float]:
    """1 for trying, and a little more for the right number."""
    return [1 + 0.1 * score for score in right(completions, answer, **columns)]


def sentence(completions: list[Any], **_columns: Any) -> list[float]:
    """The format: an answer in a sentence."""
    return [float(text.strip().startswith(("The", "It"))) for text in _texts(completions)]


def jitter(completions: list[Any], **_columns: Any) -> list[float]:
    """All but constant: a score of a judge whose last digits are noise."""
    return [0.7 + (zlib.crc32(f"{place} {text}".encode()) % 1000) * 1e-6
            for place, text in enumerate(_texts(completions))]  # fmt: skip


def longer(completions: list[Any], **_columns: Any) -> list[float]:
    """A part of the reward that pays by length."""
    return [len(text) / 30 for text in _texts(completions)]


def shorter(completions: list[Any], **_columns: Any) -> list[float]:
    """The same with the other sign."""
    return [-len(text) / 30 for text in _texts(completions)]


def wrong_but_neat(completions: list[Any], answer: list[int], **columns: Any) -> list[float]:
    """The sign of the right answer is wrong, and a number of its own earns a bonus."""
    return [score + 0.2 * neat for score, neat in zip(
        inverted(completions, answer, **columns), numbers(completions, **columns), strict=True)]  # fmt: skip
