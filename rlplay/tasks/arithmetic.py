"""Sums of two numbers: `What is 7+5?`"""

from __future__ import annotations

from rlplay.tasks.split import is_held_out
from rlplay.tasks.task import Example, Task, chat
from rlplay.tasks.verifiers import correct, mentioned

LARGEST = 19
_LESSON_PAIR = (2, 2)
_PAIRS = [(a, b) for a in range(LARGEST + 1) for b in range(LARGEST + 1)]


def question(a: int, b: int) -> str:
    """The prompt that asks for a+b."""
    return f"What is {a}+{b}?"


# 2+2 is the example of several lessons, so the base model must have seen this prompt.
HELD_OUT_PAIRS = [pair for pair in _PAIRS if pair != _LESSON_PAIR and is_held_out(question(*pair), one_in=5)]
TRAIN_PAIRS = [_LESSON_PAIR] + [pair for pair in _PAIRS if pair != _LESSON_PAIR and pair not in HELD_OUT_PAIRS]


def _example(a: int, b: int) -> Example:
    return Example(prompt=chat(question(a, b)), columns={"answer": a + b})


def arithmetic() -> Task:
    """Addition with operands 0 to 19; a fifth of the operand pairs is held out."""
    return Task(
        name="arithmetic",
        summary="Add two numbers from 0 to 19.",
        train=[_example(a, b) for a, b in TRAIN_PAIRS],
        held_out=[_example(a, b) for a, b in HELD_OUT_PAIRS],
        rewards={"correct": correct, "mentioned": mentioned},
        gold={"correct": correct},
    )
