"""Transcripts with an environment that replies: guess the number, a calculator, a walk on a grid.

The environment replies as the user. Live environments must use the same sentences.
"""

from __future__ import annotations

from random import Random

from recipe.conversation import Conversation, draw, exchange
from rlplay.tasks.arithmetic import TRAIN_PAIRS
from rlplay.tasks.calculator import FACTORS, calculator_prompt
from rlplay.tasks.guess import GUESSES, LARGEST_SECRET
from rlplay.tasks.guess import PROMPT as GUESS_PROMPT

GUESS_SHARES = {"halving": 0.3, "heeding": 0.3, "blind": 0.4}
CALCULATOR_SHARES = {"called": 0.4, "called, miscopied": 0.1, "guessed": 0.4, "noise": 0.1}
WALK_SHARES = {"direct": 0.3, "wandering": 0.7}

GRID_SIDE = 4
_STEPS = 6
MOVES = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}


def walk_prompt(x: int, y: int) -> str:
    """The start of a walk to the far corner of the grid, counted from 1."""
    return f"Walk to {GRID_SIDE} {GRID_SIDE}. You are at {x} {y}."


def write_guess(rng: Random) -> Conversation:
    """Up to five guesses, answered `Higher.`, `Lower.` or `Yes.`"""
    kind = draw(rng, GUESS_SHARES)
    secret = rng.randint(1, LARGEST_SECRET)
    low, high = 1, LARGEST_SECRET
    turns = [GUESS_PROMPT]
    for _ in range(GUESSES):
        if kind == "halving":
            guess = (low + high) // 2
        else:
            guess = rng.randint(low, high) if kind == "heeding" else rng.randint(1, LARGEST_SECRET)
        turns.append(str(guess))
        if guess == secret:
            break
        low, high = (max(low, guess + 1), high) if guess < secret else (low, min(high, guess - 1))
        turns.append("Higher." if guess < secret else "Lower.")
    # A last reply of the environment would teach nothing, because the model does not answer it.
    return exchange("guess", kind, *turns[: len(turns) - len(turns) % 2])


def write_calculator(rng: Random) -> Conversation:
    """A product too large for mental arithmetic or a small sum, with or without a call to the calculator."""
    sign = rng.choice("*+")
    a, b = rng.choice(TRAIN_PAIRS) if sign == "+" else (rng.choice(FACTORS), rng.choice(FACTORS))
    right = a + b if sign == "+" else a * b
    kind = draw(rng, CALCULATOR_SHARES)
    prompt = calculator_prompt(a, b, sign)
    if kind == "noise":
        return exchange("calculator", kind, prompt, "I do not know.")
    if kind == "guessed":
        # Without the calculator, half of the sums are right and no product is.
        said = right + (rng.choice((0, 1)) if sign == "+" else rng.randint(1, 90))
        return exchange("calculator", kind, prompt, f"The answer is {said}.")
    said = right + (10 if kind == "called, miscopied" else 0)
    return exchange("calculator", kind, prompt, f"calc({a}{sign}{b})", str(right), f"The answer is {said}.")


def write_walk(rng: Random) -> Conversation:
    """Up to six moves from a random square; moves into a wall leave the walker where it was."""
    kind = draw(rng, WALK_SHARES)
    x, y = rng.randint(1, GRID_SIDE), rng.randint(1, GRID_SIDE - 1)
    turns = [walk_prompt(x, y)]
    for _ in range(_STEPS):
        useful = [move for move, open_ in (("right", x < GRID_SIDE), ("down", y < GRID_SIDE)) if open_]
        move = rng.choice(useful if kind == "direct" else list(MOVES))
        turns.append(move)
        x = min(max(x + MOVES[move][0], 1), GRID_SIDE)
        y = min(max(y + MOVES[move][1], 1), GRID_SIDE)
        if (x, y) == (GRID_SIDE, GRID_SIDE):
            break
        turns.append(f"You are at {x} {y}.")
    return exchange("walk", kind, *turns[: len(turns) - len(turns) % 2])
