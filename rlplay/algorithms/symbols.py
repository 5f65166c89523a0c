"""Expressions from computations: runs a function of arrays on symbols instead of numbers.

`Symbols` is an array namespace (see `arrays.py`). A function called with symbols for its arrays returns an expression,
which `expression_text.py` writes. Every symbol may carry its recorded values; then the expression has a value, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.trace.numbers import compact, real_minus

_QUOTIENT = re.compile(r"log\((\w+)/(\w+)\)")
_POWERS: dict[float, str] = {2: "²", 3: "³"}


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression: an operation on `parts`, and its values if those of its symbols are known, else None."""

    operation: str
    parts: tuple[Expression, ...] = ()
    text: str = ""
    value: Any = None

    def at(self, place: int) -> float:
        """Its value at one token."""
        values = np.ravel(np.asarray(self.value, dtype=float))
        return float(values[place if values.size > 1 else 0])

    def __add__(self, other: Any) -> Expression:
        return _sum(self, other, 1)

    def __radd__(self, other: Any) -> Expression:
        return _sum(other, self, 1)

    def __sub__(self, other: Any) -> Expression:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Expression:
        return _sum(other, self, -1)

    def __mul__(self, other: Any) -> Expression:
        return _product(self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _product(other, self)

    def __truediv__(self, other: Any) -> Expression:
        return self if is_number(other, 1) else _made("/", lambda x, y: x / y, self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _made("/", lambda x, y: x / y, other, self)

    def __pow__(self, power: float) -> Expression:
        return _made("^", lambda x: x**power, self, text=_POWERS.get(power, f"^{real_minus(compact(power))}"))

    def __neg__(self) -> Expression:
        return _product(-1.0, self)

    def __rpow__(self, base: float) -> Expression:
        return Symbols.exp(self * float(np.log(base)))  # type: ignore[no-any-return]

    def __abs__(self) -> Expression:
        return Symbols.abs(self)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _made("compare", lambda x, y: x == y, self, other, text="=")

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _made("compare", lambda x, y: x != y, self, other, text="≠")

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x & y, self, other, text="and")

    def __or__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x | y, self, other, text="or")

    def __invert__(self) -> Expression:
        return _made("not", lambda x: ~x, self)

    def __getitem__(self, index: Any) -> Expression:
        if index != (slice(None), None):
            raise TypeError("an equation can hold x[:, None], but no other index")
        return self

    def __gt__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x > y, self, other, text=">")

    def __ge__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x >= y, self, other, text="≥")

    def __lt__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x < y, self, other, text="<")

    def __le__(self, other: Any) -> Expression:
        return _made("compare", lambda x, y: x <= y, self, other, text="≤")

    def __bool__(self) -> bool:
        raise TypeError("a condition is true for some tokens only: write xp.where(condition, one, other), not if")


def name(text: str, value: Any = None) -> Expression:
    """The symbol `text`, with its values [L] or [1] if they are known."""
    return Expression("name", (), text, value)


def _term(x: Any) -> Expression:
    if isinstance(x, Expression):
        return x
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
        raise TypeError(f"{type(x).__name__} is neither a number nor one of the function's arguments")
    return Expression("number", (), "", float(x))


def is_number(x: Any, number: float) -> bool:
    """Whether an expression or a number is this constant."""
    x = x if isinstance(x, Expression) else _term(x)
    return x.operation == "number" and bool(x.value == number)


def _made(operation: str, compute: Callable[..., Any], *parts: Any, text: str = "") -> Expression:
    terms = tuple(map(_term, parts))
    known = all(term.value is not None for term in terms)
    return Expression(operation, terms, text, compute(*(term.value for term in terms)) if known else None)


def _sum(one: Any, other: Any, sign: int) -> Expression:
    if is_number(other, 0):
        return _term(one)
    if is_number(one, 0):
        return _term(other) if sign > 0 else -_term(other)
    return _made("+" if sign > 0 else "−", lambda x, y: x + sign * y, one, other)


def _product(one: Any, other: Any) -> Expression:
    """x·y without factors of 1, with numbers combined in front, and with log(q/p) for −log(p/q)."""
    x, y = _term(one), _term(other)
    if is_number(x, 0) or is_number(y, 0):
        return _term(0.0)
    if is_number(x, 1) or is_number(y, 1):
        return y if is_number(x, 1) else x
    if is_number(x, -1) and y.operation == "name" and (quotient := _QUOTIENT.fullmatch(y.text)):
        return name(f"log({quotient[2]}/{quotient[1]})", None if y.value is None else -y.value)
    if x.operation == "number" and y.operation == "·" and y.parts[0].operation == "number":
        return _product(x.value * y.parts[0].value, y.parts[1])
    return _made("·", lambda left, right: left * right, x, y)


def _call(function: str) -> Any:
    compute = getattr(NumpyArrays, function)
    return staticmethod(lambda *x: _made(function, compute, *x))


class Symbols:
    """The array namespace whose results are expressions."""

    exp, log, expm1, log1p = _call("exp"), _call("log"), _call("expm1"), _call("log1p")
    sqrt, tanh, abs = _call("sqrt"), _call("tanh"), _call("abs")
    minimum, maximum, relu = _call("minimum"), _call("maximum"), _call("relu")
    sigmoid, logsigmoid, log_odds = _call("sigmoid"), _call("logsigmoid"), _call("log_odds")
    stop_gradient = _call("stop_gradient")

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Expression:
        """yes if condition else no; a single number if both are the same."""
        if _term(yes).operation == "number" and is_number(no, _term(yes).value):
            return _term(yes)
        return _made("where", NumpyArrays.where, condition, yes, no)

    @staticmethod
    def count_over(mask: Any) -> Expression:
        """n, the number of tokens in the answer; of another mask, the number of its tokens."""
        mask = _term(mask)
        value = None if mask.value is None else NumpyArrays.count_over(mask.value)
        where, conditions = _counted(mask, "in the answer")
        return Expression("over", conditions, f"number of tokens {where}", value) if conditions else name("n", value)

    @staticmethod
    def ranked(x: Any, by: Any) -> Expression:
        """The x of the minibatch whose rank is that of `by`."""
        x, by = _term(x), _term(by)
        known = x.value is not None and by.value is not None
        value = NumpyArrays.ranked(np.atleast_1d(x.value), np.atleast_1d(by.value)) if known else None
        return Expression("over", (x, by), "the {} of the minibatch that ranks as {}", value)

    @staticmethod
    def clip(x: Any, low: float | None = None, high: float | None = None) -> Expression:
        """clip(x, low, high), min(x, high) or max(x, low)."""
        if low is None and high is None:
            return _term(x)
        given = [bound for bound in (low, high) if bound is not None]
        text = "clip" if len(given) == 2 else "min" if low is None else "max"
        return _made("clip", lambda x, *_: NumpyArrays.clip(x, low, high), x, *given, text=text)

    @staticmethod
    def let(called: str, x: Any) -> Expression:
        """x under a name that the end of the equation defines."""
        return _made("let", lambda x: x, x, text=called)

    @staticmethod
    def sum_over(x: Any, mask: Any) -> Expression:
        """Σ of x over the answer, or over the tokens of another mask."""
        return _over("Σ of", NumpyArrays.sum_over, x, mask, *_counted(_term(mask), "over the answer"))

    @staticmethod
    def mean_over(x: Any, mask: Any) -> Expression:
        """The mean of x over the answer, or over the tokens of another mask."""
        return _over("mean of", NumpyArrays.mean_over, x, mask, *_counted(_term(mask), "over the answer"))

    @staticmethod
    def group_mean(x: Any, group: Any) -> Expression:
        """The mean over the prompt's answers."""
        return _over("mean of", NumpyArrays.group_mean, x, group, "over the group")

    @staticmethod
    def group_std(x: Any, group: Any) -> Expression:
        """The standard deviation over the prompt's answers."""
        return _over("std of", NumpyArrays.group_std, x, group, "over the group")


def _over(
    words: str, compute: Callable[..., Any], x: Any, by: Any, where: str, conditions: tuple[Expression, ...] = ()
) -> Expression:
    x, by = _term(x), _term(by)
    known = x.value is not None and by.value is not None
    return Expression("over", (x, *conditions), f"{words} {{}} {where}", compute(x.value, by.value) if known else None)


def _counted(mask: Expression, answer: str) -> tuple[str, tuple[Expression, ...]]:
    """The tokens of a mask in words, with the conditions to fill in: "over the answer where {}".

    Without the answer's own mask, the conditions alone choose, also among tokens that the policy did not sample.
    """
    parts = _conjuncts(mask)
    conditions = tuple(part for part in parts if not _is_mask(part))
    where = f"where {' and '.join('{}' for _ in conditions)}"
    if not conditions:
        return answer, conditions
    return f"{answer} {where}" if len(conditions) < len(parts) else where, conditions


def _conjuncts(mask: Expression) -> tuple[Expression, ...]:
    if mask.operation == "compare" and mask.text == "and":
        return tuple(part for each in mask.parts for part in _conjuncts(each))
    return (mask,)


def _is_mask(term: Expression) -> bool:
    return term.operation == "name" and term.text == "mask"
