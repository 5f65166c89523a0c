"""An expression of `symbols.py` as text: `equation` in symbols, `filled` with the numbers of one token."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Literal

from rlplay.algorithms.symbols import Expression, is_number
from rlplay.trace.numbers import compact, real_minus
from rlplay.trace.text import quote

Part = tuple[str, Literal["plain", "won", "lost"]]
"""A piece of a written formula; of the terms in a min or max, the smaller or larger one "won"."""
Number = Callable[[str, float, bool], str]
"""Writes a number in place of the symbol with this name: as a factor, or if the flag is True, as a signed term."""

_JOINS = ("and", "or")
_SUM, _PRODUCT, _POWER, _ATOM = 1, 2, 3, 4
"""The precedence of a written expression; one with a lower precedence than its surroundings gets brackets."""


def equation(term: Expression) -> str:
    """The expression in symbols, then the definitions of its named parts: "τ·A, τ = 1 if A > 0 else 2".

    Raises ValueError, one line, if two different parts have one name.
    """
    definitions: dict[str, str] = {}
    for let in _definitions(term):
        text = "".join(text for text, _ in _Writer().write(let.parts[0]))
        if definitions.setdefault(let.text, text) != text:
            raise ValueError(f"xp.let gives two different parts the name {quote(let.text)}; give each its own name")
    written = "".join(text for text, _ in _Writer().write(term))
    return ", ".join([written, *(f"{name} = {text}" for name, text in definitions.items())])


def _definitions(term: Expression) -> Iterator[Expression]:
    """The named parts of an expression, each before the named parts inside it."""
    inner: list[Expression] = []
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


def filled(term: Expression, place: int, number: Number) -> list[list[Part]]:
    """The expression with the numbers of the token at `place`; if a min or max decides, a second time, multiplied out.

    What is no sum, product, min or max is computed. The result is not among the parts.
    """
    lines = [_Writer(number, place).write(term)]
    if _decides(term):
        lines.append(_Writer(number, place, multiplied=True).write(term))
    return lines


def _decides(term: Expression) -> bool:
    return term.operation in ("minimum", "maximum") or any(_decides(part) for part in term.parts)


class _Writer:
    """Writes one expression in symbols or, given a `number` function, with the numbers of the token at a place."""

    def __init__(self, number: Number | None = None, place: int = 0, multiplied: bool = False) -> None:
        self._number, self._place, self._multiplied = number, place, multiplied

    def write(self, term: Expression, precedence: int = 0) -> list[Part]:
        """The written term, in brackets if its precedence is lower than `precedence`."""
        parts, own = self._written(term)
        return parts if own >= precedence else [("(", "plain"), *parts, (")", "plain")]

    def _written(self, term: Expression) -> tuple[list[Part], int]:
        if term.operation == "number":
            return [(_constant(term.value), "plain")], _ATOM if term.value >= 0 else _PRODUCT
        if self._number is not None:
            product = self._multiplied and term.operation in ("·", "/") and not _decides(term)
            if product or term.operation not in ("+", "−", "·", "/", "minimum", "maximum"):
                return [(self._number(_called(term), term.at(self._place), product), "plain")], _ATOM
        if term.operation in ("minimum", "maximum"):
            return self._decided(term), _ATOM
        return self._composed(term)

    def _composed(self, term: Expression) -> tuple[list[Part], int]:
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
            case "·" if is_number(parts[0], -1):
                return [("−", "plain"), *self._factor(parts[1], _PRODUCT)], _PRODUCT
            case "·" | "/":
                right = self._factor(parts[1], _PRODUCT if term.operation == "·" else _POWER)
                return [*self.write(parts[0], _PRODUCT), (term.operation, "plain"), *right], _PRODUCT
            case "^":
                return [*self.write(parts[0], _ATOM), (term.text, "plain")], _POWER
        loose = {"where": (0, _SUM, _SUM), "compare": (_SUM, _SUM), "not": (_SUM,)}.get(
            term.operation, (0,) * len(parts)
        )
        if term.text in _JOINS:
            loose = tuple(_SUM if part.text in _JOINS else 0 for part in parts)
        written = (self.write(part, tightness) for part, tightness in zip(parts, loose, strict=True))
        return _function(term, ["".join(text for text, _ in each) for each in written])

    def _factor(self, term: Expression, precedence: int) -> list[Part]:
        """The text, in brackets if it begins with a sign."""
        written = self.write(term, precedence)
        return [("(", "plain"), *written, (")", "plain")] if written[0][0].startswith("−") else written

    def _decided(self, term: Expression) -> list[Part]:
        """min(…, …) or max(…, …): with numbers, also which of the two counts, or both if they are equal."""
        called = "min" if term.operation == "minimum" else "max"
        one, other = ("".join(text for text, _ in self.write(part)) for part in term.parts)
        kinds: list[Literal["plain", "won", "lost"]] = ["plain", "plain"]
        if self._number is not None:
            result = term.at(self._place)
            kinds = ["won" if part.at(self._place) == result else "lost" for part in term.parts]
        return [(f"{called}(", "plain"), (one, kinds[0]), (", ", "plain"), (other, kinds[1]), (")", "plain")]


def _function(term: Expression, texts: list[str]) -> tuple[list[Part], int]:
    match term.operation:
        case "compare":
            return [(f"{texts[0]} {term.text} {texts[1]}", "plain")], 0
        case "where":
            return [(f"{texts[1]} if {texts[0]} else {texts[2]}", "plain")], 0
        case "over":
            return [(term.text.format(*texts), "plain")], 0
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
        "abs": "|{}|",
    }
    text = names.get(term.operation, f"{term.text or term.operation}({{}})").format(", ".join(texts))
    return [(text, "plain")], _ATOM


def _called(term: Expression) -> str:
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
    return "log 2" if value == math.log(2) else real_minus(compact(value))
