"""Equations from computations: runs a function of arrays on symbols and writes out what it computes.

`Symbols` is an array namespace (see `arrays.py`). A function called with symbols for its arrays returns an expression.
`equation` writes the expression in symbols, `filled` with the numbers of one token. The numbers come from the same call
of the function, since every symbol may carry its recorded values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays

Part = tuple[str, Literal["plain", "won", "lost"]]
"""A piece of a written formula; of the terms in a min or max, the smaller or larger one "won"."""
Number = Callable[[str, float, bool], str]
"""Writes a number in place of the symbol with this name: as a factor, or if the flag is True, as a signed term."""

_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4
"""The precedence of a written expression; one with a lower precedence than its surroundings gets brackets."""
_QUOTIENT = re.compile(r"log\((\w+)/(\w+)\)")
_POWERS: dict[float, str] = {2: "²", 3: "³"}


@dataclass(frozen=True, eq=False)
class Term:
    """An expression: an operation on `parts`, and its values if those of its symbols are known, else None."""

    operation: str
    parts: tuple[Term, ...] = ()
    text: str = ""
    value: Any = None

    def at(self, place: int) -> float:
        """Its value at one token."""
        values = np.ravel(np.asarray(self.value, dtype=float))
        return float(values[place if values.size > 1 else 0])

    def __add__(self, other: Any) -> Term:
        return _sum(self, other, 1)

    def __radd__(self, other: Any) -> Term:
        return _sum(other, self, 1)

    def __sub__(self, other: Any) -> Term:
        return _sum(self, other, -1)

    def __rsub__(self, other: Any) -> Term:
        return _sum(other, self, -1)

    def __mul__(self, other: Any) -> Term:
        return _product(self, other)

    def __rmul__(self, other: Any) -> Term:
        return _product(other, self)

    def __truediv__(self, other: Any) -> Term:
        return self if _is(other, 1) else _made("/", lambda x, y: x / y, self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return _made("/", lambda x, y: x / y, other, self)

    def __pow__(self, power: float) -> Term:
        return _made("^", lambda x: x**power, self, text=_POWERS.get(power, f"^{power:g}".replace("-", "−")))

    def __neg__(self) -> Term:
        return _product(-1.0, self)

    def __rpow__(self, base: float) -> Term:
        return Symbols.exp(self * float(np.log(base)))  # type: ignore[no-any-return]

    def __abs__(self) -> Term:
        return Symbols.abs(self)  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return _made("compare", lambda x, y: x == y, self, other, text="=")

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return _made("compare", lambda x, y: x != y, self, other, text="≠")

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x & y, self, other, text="and")

    def __or__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x | y, self, other, text="or")

    def __invert__(self) -> Term:
        return _made("not", lambda x: ~x, self)

    def __getitem__(self, index: Any) -> Term:
        if index != (slice(None), None):
            raise TypeError("of an array's places only [:, None] can be written in an equation")
        return self

    def __gt__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x > y, self, other, text=">")

    def __ge__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x >= y, self, other, text="≥")

    def __lt__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x < y, self, other, text="<")

    def __le__(self, other: Any) -> Term:
        return _made("compare", lambda x, y: x <= y, self, other, text="≤")

    def __bool__(self) -> bool:
        raise TypeError("a condition on arrays has no single answer: write xp.where(condition, one, other), not if")


def name(text: str, value: Any = None) -> Term:
    """The symbol `text`, with its values [L] or [1] if they are known."""
    return Term("name", (), text, value)


def _term(x: Any) -> Term:
    if isinstance(x, Term):
        return x
    if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
        raise TypeError(f"{type(x).__name__} is neither a number nor one of the function's arguments")
    return Term("number", (), "", float(x))


def _is(x: Any, number: float) -> bool:
    x = x if isinstance(x, Term) else _term(x)
    return x.operation == "number" and bool(x.value == number)


def _made(operation: str, compute: Callable[..., Any], *parts: Any, text: str = "") -> Term:
    terms = tuple(map(_term, parts))
    known = all(term.value is not None for term in terms)
    return Term(operation, terms, text, compute(*(term.value for term in terms)) if known else None)


def _sum(one: Any, other: Any, sign: int) -> Term:
    if _is(other, 0):
        return _term(one)
    if _is(one, 0):
        return _term(other) if sign > 0 else -_term(other)
    return _made("+" if sign > 0 else "−", lambda x, y: x + sign * y, one, other)


def _product(one: Any, other: Any) -> Term:
    """x·y without factors of 1, with numbers combined in front, and with log(q/p) for −log(p/q)."""
    x, y = _term(one), _term(other)
    if _is(x, 0) or _is(y, 0):
        return _term(0.0)
    if _is(x, 1) or _is(y, 1):
        return y if _is(x, 1) else x
    if _is(x, -1) and y.operation == "name" and (quotient := _QUOTIENT.fullmatch(y.text)):
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
    def where(condition: Any, yes: Any, no: Any) -> Term:
        """yes if condition else no; a single number if both are the same."""
        if _term(yes).operation == "number" and _is(no, _term(yes).value):
            return _term(yes)
        return _made("where", NumpyArrays.where, condition, yes, no)

    @staticmethod
    def count_over(mask: Any) -> Term:
        """n, the number of tokens in the answer."""
        mask = _term(mask)
        return name("n", None if mask.value is None else NumpyArrays.count_over(mask.value))

    @staticmethod
    def clip(x: Any, low: float | None = None, high: float | None = None) -> Term:
        """clip(x, low, high), min(x, high) or max(x, low)."""
        if low is None and high is None:
            return _term(x)
        given = [bound for bound in (low, high) if bound is not None]
        text = "clip" if len(given) == 2 else "min" if low is None else "max"
        return _made("clip", lambda x, *_: NumpyArrays.clip(x, low, high), x, *given, text=text)

    @staticmethod
    def let(called: str, x: Any) -> Term:
        """x under a name that the end of the equation defines."""
        return _made("let", lambda x: x, x, text=called)

    @staticmethod
    def sum_over(x: Any, mask: Any) -> Term:
        """Σ of x over the answer."""
        return _over("Σ of", NumpyArrays.sum_over, x, mask)

    @staticmethod
    def mean_over(x: Any, mask: Any) -> Term:
        """The mean of x over the answer."""
        return _over("mean of", NumpyArrays.mean_over, x, mask)

    @staticmethod
    def group_mean(x: Any, group: Any) -> Term:
        """The mean over the prompt's answers."""
        return _over("mean of", NumpyArrays.group_mean, x, group, "group")

    @staticmethod
    def group_std(x: Any, group: Any) -> Term:
        """The standard deviation over the prompt's answers."""
        return _over("std of", NumpyArrays.group_std, x, group, "group")


def _over(words: str, compute: Callable[..., Any], x: Any, by: Any, where: str = "answer") -> Term:
    x, by = _term(x), _term(by)
    known = x.value is not None and by.value is not None
    return Term("over", (x,), f"{words} {{}} over the {where}", compute(x.value, by.value) if known else None)


def equation(term: Term) -> str:
    """The expression in symbols, then the definitions of its named parts: "τ·A, τ = 1 if A > 0 else 2".

    Raises ValueError, one line, if two different parts have one name.
    """
    definitions: dict[str, str] = {}
    for let in _definitions(term):
        text = "".join(text for text, _ in _Writer().write(let.parts[0]))
        if definitions.setdefault(let.text, text) != text:
            raise ValueError(f"xp.let gives two different parts the name {let.text!r}; give each its own name")
    written = "".join(text for text, _ in _Writer().write(term))
    return ", ".join([written, *(f"{name} = {text}" for name, text in definitions.items())])


def _definitions(term: Term) -> Iterator[Term]:
    """The named parts of an expression, each before the named parts inside it."""
    inner: list[Term] = []
    stack = [term]
    while stack:
        each = stack.pop(0)
        if each.operation == "let":
            yield each
            inner.append(each.parts[0])
        else:
            stack += each.parts
    for each in inner:
        yield from _definitions(each)


def filled(term: Term, place: int, number: Number) -> list[list[Part]]:
    """The expression with the numbers of the token at `place`; if a min or max decides, a second time, multiplied out.

    What is no sum, product, min or max is computed. The result is not among the parts.
    """
    lines = [_Writer(number, place).write(term)]
    if _decides(term):
        lines.append(_Writer(number, place, multiplied=True).write(term))
    return lines


def _decides(term: Term) -> bool:
    return term.operation in ("minimum", "maximum") or any(_decides(part) for part in term.parts)


class _Writer:
    """Writes one expression in symbols or, given a `number` function, with the numbers of the token at a place."""

    def __init__(self, number: Number | None = None, place: int = 0, multiplied: bool = False) -> None:
        self._number, self._place, self._multiplied = number, place, multiplied

    def write(self, term: Term, precedence: int = 0) -> list[Part]:
        """The written term, in brackets if its precedence is lower than `precedence`."""
        parts, own = self._written(term)
        return parts if own >= precedence else [("(", "plain"), *parts, (")", "plain")]

    def _written(self, term: Term) -> tuple[list[Part], int]:
        if term.operation == "number":
            return [(_constant(term.value), "plain")], _ATOM if term.value >= 0 else _PRODUCT
        if self._number is not None:
            product = self._multiplied and term.operation in ("·", "/") and not _decides(term)
            if product or term.operation not in ("+", "−", "·", "/", "minimum", "maximum"):
                return [(self._number(_called(term), term.at(self._place), product), "plain")], _ATOM
        if term.operation in ("minimum", "maximum"):
            return self._decided(term), _ATOM
        return self._composed(term)

    def _composed(self, term: Term) -> tuple[list[Part], int]:
        parts = term.parts
        match term.operation:
            case "name" | "let":
                return [(term.text, "plain")], _SUM if " − " in term.text else _ATOM
            case "+" | "−":
                left, right = self.write(parts[0], _SUM), self.write(parts[1], _PRODUCT)
                sign = term.operation
                if right[0][0].startswith("−"):
                    sign, right = "−" if sign == "+" else "+", [(right[0][0][1:], right[0][1]), *right[1:]]
                return [*left, (f" {sign} ", "plain"), *right], _SUM
            case "·" if _is(parts[0], -1):
                return [("−", "plain"), *self._factor(parts[1], _PRODUCT)], _PRODUCT
            case "·" | "/":
                right = self._factor(parts[1], _PRODUCT if term.operation == "·" else _POWER)
                return [*self.write(parts[0], _PRODUCT), (term.operation, "plain"), *right], _PRODUCT
            case "^":
                return [*self.write(parts[0], _ATOM), (term.text, "plain")], _POWER
        loose = {"where": (0, _SUM, _SUM), "compare": (_SUM, _SUM), "not": (_SUM,)}.get(
            term.operation, (0,) * len(parts)
        )
        written = (self.write(part, tightness) for part, tightness in zip(parts, loose, strict=True))
        return _function(term, ["".join(text for text, _ in each) for each in written])

    def _factor(self, term: Term, precedence: int) -> list[Part]:
        """The text, in brackets if it begins with a sign."""
        written = self.write(term, precedence)
        return [("(", "plain"), *written, (")", "plain")] if written[0][0].startswith("−") else written

    def _decided(self, term: Term) -> list[Part]:
        """min(…, …) or max(…, …): with numbers, also which of the two counts, or both if they are equal."""
        called = "min" if term.operation == "minimum" else "max"
        one, other = ("".join(text for text, _ in self.write(part)) for part in term.parts)
        kinds: list[Literal["plain", "won", "lost"]] = ["plain", "plain"]
        if self._number is not None:
            result = term.at(self._place)
            kinds = ["won" if part.at(self._place) == result else "lost" for part in term.parts]
        return [(f"{called}(", "plain"), (one, kinds[0]), (", ", "plain"), (other, kinds[1]), (")", "plain")]


def _function(term: Term, texts: list[str]) -> tuple[list[Part], int]:
    match term.operation:
        case "compare":
            return [(f"{texts[0]} {term.text} {texts[1]}", "plain")], 0
        case "where":
            return [(f"{texts[1]} if {texts[0]} else {texts[2]}", "plain")], 0
        case "over":
            return [(term.text.format(texts[0]), "plain")], 0
        case "exp":
            return [(_exponential(texts[0]), "plain")], _PRODUCT
        case "expm1":
            return [(f"{_exponential(texts[0])} − 1", "plain")], _SUM
    names = {
        "not": "not {}",
        "logsigmoid": "log σ({})",
        "log_odds": "log odds of exp({})",
        "relu": "max(0, {})",
        "stop_gradient": "sg[{}]",
    }
    text = names.get(term.operation, f"{term.text or term.operation}({{}})").format(", ".join(texts))
    return [(text, "plain")], _ATOM


def _called(term: Term) -> str:
    """The symbol of a number: its own, or the first in its expression."""
    if term.operation in ("name", "let"):
        return term.text
    return next(filter(None, map(_called, term.parts)), "")


def _exponential(text: str) -> str:
    """exp(…); for a logarithm, its argument."""
    if text.startswith("log ") and text.count(" ") == 1:
        return text.removeprefix("log ")
    quotient = re.fullmatch(r"log\((\w+(?:/\w+)?)\)", text)
    return quotient[1] if quotient else f"exp({text})"


def _constant(value: float) -> str:
    return f"{value:g}".replace("-", "−")
