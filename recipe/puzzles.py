"""Small puzzles with one right answer: sorting digits, counting letters, listing numbers."""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange

SORTING_SHARES = {"right": 0.4, "two swapped": 0.3, "copied": 0.2, "backwards": 0.1}
LETTER_SHARES = {"right": 0.4, "near miss": 0.45, "noise": 0.15}
LIST_SHARES = {"right": 0.6, "too many": 0.2, "too few": 0.2}

_WORDS = ("apple", "ball", "book", "coin", "water", "story", "egg", "answer", "question", "fish", "happy", "sun")


def write_sorting(rng: Random) -> Conversation:
    """`Sort 5 2 9.` with three to five different digits."""
    digits = rng.sample(range(10), rng.randrange(3, 6))
    kind = draw(rng, SORTING_SHARES)
    said = digits if kind == "copied" else sorted(digits, reverse=kind == "backwards")
    if kind == "two swapped":
        k = rng.randrange(len(said) - 1)
        said[k], said[k + 1] = said[k + 1], said[k]
    return exchange("sorting", kind, f"Sort {_spaced(digits)}.", _spaced(said))


def write_letters(rng: Random) -> Conversation:
    """`How many letters are in apple?`"""
    word = rng.choice(_WORDS)
    kind = draw(rng, LETTER_SHARES)
    count = len(word) + (rng.choice((-2, -1, 1, 2)) if kind == "near miss" else 0)
    return exchange(
        "letters", kind, f"How many letters are in {word}?", "I do not know." if kind == "noise" else str(count)
    )


def write_list(rng: Random) -> Conversation:
    """`Count from 3 to 7.`: a loose verifier rewards lists."""
    first = rng.randrange(20)
    last = first + rng.randrange(2, 7)
    kind = draw(rng, LIST_SHARES)
    end = last + {"right": 0, "too many": rng.randrange(1, 4), "too few": -1}[kind]
    said = ", ".join(str(number) for number in range(first, end + 1))
    return exchange("lists", kind, f"Count from {first} to {last}.", f"{said}.")


def _spaced(digits: list[int]) -> str:
    return " ".join(str(digit) for digit in digits)
