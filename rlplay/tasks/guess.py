"""Guess a number: an environment answers `Higher.` or `Lower.` until the guess is right or the guesses are used up."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rlplay.tasks.numerals import last_number
from rlplay.tasks.task import Completion, Example, Task, chat, own_turns

PROMPT = "I have a number from 1 to 20. Guess it."
LARGEST_SECRET = 20
GUESSES = 5


def answer(example: Example, turns: list[str]) -> str | None:
    """The environment's reply to the last of the model's `turns`; None ends the episode."""
    guess, secret = last_number(turns[-1]), example.columns["secret"]
    if guess == secret or len(turns) == GUESSES:
        return None
    return "Say a number." if guess is None else "Higher." if guess < secret else "Lower."


def guessed(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    secret: list[int],
    **_columns: Any,
) -> list[float | None]:
    """1.0 if the last guess is right, else 0.0."""
    return [float(_guesses(c)[-1:] == [right]) for c, right in zip(completions, secret, strict=True)]


def quick(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    secret: list[int],
    **_columns: Any,
) -> list[float | None]:
    """From 1.0 for the first guess down to 0.2 for the fifth; 0.0 if none is right."""
    return [
        (1 - (len(_guesses(c)) - 1) / GUESSES) * float(_guesses(c)[-1:] == [right])
        for c, right in zip(completions, secret, strict=True)
    ]


def _guesses(completion: Completion) -> list[Decimal | None]:
    return [last_number(turn) for turn in own_turns(completion)]


def guess() -> Task:
    """One prompt and twenty secrets. None is held out, because only the environment's replies distinguish them."""
    return Task(
        name="guess",
        stage="conversation",
        speaker="host",
        summary="Guess a number from 1 to 20 in five guesses; the replies are higher or lower.",
        train=[Example(prompt=chat(PROMPT), columns={"secret": n}) for n in range(1, LARGEST_SECRET + 1)],
        held_out=[],
        rewards={"guessed": guessed, "quick": quick},
        gold={"guessed": guessed},
        environment=answer,
    )
