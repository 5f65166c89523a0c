"""Answers to the word problems: a quarter works out the steps, mostly right; the rest is blurted, mostly wrong."""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange
from rlplay.tasks.word_problems import GOODS, NAMES, TRAIN_OPERANDS, Operands, question

SHARES = {
    "worked, right": 0.215,
    "worked, slip": 0.035,
    "blurted, right": 0.04,
    "blurted, wrong": 0.66,
    "list": 0.05,
}


def write(rng: Random) -> Conversation:
    """One problem with one answer; operands come from the training triples only."""
    numbers = rng.choice(TRAIN_OPERANDS)
    kind = draw(rng, SHARES)
    prompt = question(numbers, rng.choice(NAMES), *rng.choice(GOODS))
    return exchange("word_problems", kind, prompt, _answer(rng, kind, numbers))


def worked(numbers: Operands, slip: int = 0) -> str:
    """The steps and the answer; `slip` is added to the product and carried on, like a slip of the pen."""
    bought = numbers.bought + slip
    total = numbers.start + bought
    return f"{numbers.groups}*{numbers.each}={bought}. {numbers.start}+{bought}={total}. The answer is {total}."


def _answer(rng: Random, kind: str, numbers: Operands) -> str:
    right = numbers.answer
    if kind == "worked, right":
        return worked(numbers)
    if kind == "worked, slip":
        return worked(numbers, slip=rng.choice((-1, 1, 2)))
    if kind == "blurted, right":
        return f"The answer is {right}."
    if kind == "blurted, wrong":
        return f"The answer is {_wrong(rng, numbers)}."
    # As in the sums, the right answer is in the list but never last.
    first = right - rng.randrange(4)
    return f"It is {first}, {first + 1}, {first + 2}, {first + 3} or {first + 4}."


def _wrong(rng: Random, numbers: Operands) -> int:
    """A number that someone in a hurry would say, never the right one."""
    guesses = (
        numbers.start + numbers.groups + numbers.each,
        numbers.start + numbers.each,
        numbers.start + numbers.groups,
        numbers.bought,
        numbers.answer + rng.choice((-3, -2, -1, 1, 2, 3)),
        rng.randrange(5, 35),
    )
    return rng.choice([guess for guess in guesses if guess != numbers.answer])
