"""Sums and products with a tool: a turn with `calc(23*17)` is answered by a calculator, any other ends the episode."""

from __future__ import annotations

from typing import Any

from rlplay.tasks.arithmetic import HELD_OUT_PAIRS, TRAIN_PAIRS
from rlplay.tasks.calculation import CalculationError, calculate
from rlplay.tasks.numerals import last_number
from rlplay.tasks.task import Completion, Example, Task, chat, own_turns

MOST_CALLS = 3
"""Calls in an episode that get an answer; one more ends it."""
_CALL = "calc("
FACTORS = range(11, 40)
"""Factors of the products, too large for the base model to multiply in its head."""
_UNSEEN_FACTORS = range(41, 50)
_EVERY = 4  # of all products one in four, so that there are as many of them as of sums


def calculator_prompt(a: int, b: int, sign: str) -> str:
    """The question; `sign` is `+` or `*`."""
    return f"What is {a}{sign}{b}? You may call calc."


def answer(example: Example, turns: list[str]) -> str | None:  # noqa: ARG001 - an environment is given both
    """The calculator's reply to the last of the model's `turns`; None ends the episode."""
    expression = call_in(turns[-1])
    if expression is None or len(turns) > MOST_CALLS:
        return None
    try:
        return calculate(expression)
    except CalculationError as error:
        return f"Error: {error}."


def call_in(turn: str) -> str | None:
    """What the first call in a turn asks for: the text up to its closing bracket, or to the end without one."""
    _, call, rest = turn.partition(_CALL)
    if not call:
        return None
    depth = 1
    for at, character in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return rest[:at]
    return rest


def solved(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    answer: list[int],
    **_columns: Any,
) -> list[float | None]:
    """1.0 if the last number of the last turn is `answer` and that turn is no call, else 0.0."""
    return [_solves(own_turns(c)[-1:], right) for c, right in zip(completions, answer, strict=True)]


def _solves(last: list[str], right: int) -> float:
    return float(bool(last) and call_in(last[0]) is None and last_number(last[0]) == right)


def product_calls(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    sign: list[str],
    **_columns: Any,
) -> list[float | None]:
    """The number of calls where a product is asked for; None for sums. With a negative weight a call has a price."""
    return _calls(completions, sign, "*")


def sum_calls(
    prompts: list[Any],  # noqa: ARG001 - TRL's signature
    completions: list[Completion],
    sign: list[str],
    **_columns: Any,
) -> list[float | None]:
    """The number of calls where a sum is asked for; None for products."""
    return _calls(completions, sign, "+")


def _calls(completions: list[Completion], signs: list[str], wanted: str) -> list[float | None]:
    both = zip(completions, signs, strict=True)
    return [float(sum(call_in(t) is not None for t in own_turns(c))) if s == wanted else None for c, s in both]


def _example(a: int, b: int, sign: str) -> Example:
    columns = {"answer": a + b if sign == "+" else a * b, "sign": sign}
    return Example(prompt=chat(calculator_prompt(a, b, sign)), columns=columns)


def calculator() -> Task:
    """As many products of factors from 11 to 39 as sums; held out are sums that the base model has never seen, and
    products with a factor from 41 to 49."""
    products = [(a, b) for a in FACTORS for b in FACTORS][::_EVERY]
    unseen = [(a, b) for a in _UNSEEN_FACTORS for b in FACTORS][::_EVERY]
    alternating = [e for pair in zip(TRAIN_PAIRS, products, strict=False) for e in _both(*pair)]
    held_out = [e for pair in zip(HELD_OUT_PAIRS, unseen, strict=False) for e in _both(*pair)]
    return Task(
        name="calculator",
        stage="conversation",
        speaker="calculator",
        summary="Add small numbers or multiply large ones; a calculator answers calls.",
        train=alternating,
        held_out=held_out,
        rewards={"correct": solved, "product_calls": product_calls, "sum_calls": sum_calls},
        gold={"correct": solved},
        environment=answer,
    )


def _both(operands: tuple[int, int], factors: tuple[int, int]) -> list[Example]:
    return [_example(*operands, "+"), _example(*factors, "*")]
