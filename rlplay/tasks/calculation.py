"""Arithmetic expressions evaluated by a parser written out by hand, for text that a model wrote.

Nothing is ever executed: the grammar has numbers, `+ - * /` and brackets. Length, brackets, digits and results are
bounded, so that no expression takes long. Arithmetic is exact.

    sum     = product (("+" | "-") product)*
    product = factor (("*" | "/") factor)*
    factor  = "-" factor | "(" sum ")" | number
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST = 80
"""Characters of the longest expression."""
DEEPEST = 10
"""Levels of brackets and minus signs inside each other."""
MOST_DIGITS = 12
"""Digits of the longest number, before and after its point together."""
LARGEST = 10**15
"""No result may be larger, and no denominator of a fraction on the way."""
DECIMALS = 4
"""Places to which a result that is not whole is rounded."""

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class CalculationError(ValueError):
    """An expression without a result: one line that says why."""


def calculate(expression: str) -> str:
    """The result of `expression` as text: whole, or rounded to `DECIMALS` places.

    Raises CalculationError, one line, if it is malformed, divides by 0 or exceeds a bound.
    """
    if len(expression) > LONGEST:
        raise CalculationError(f"the expression is longer than {LONGEST} characters")
    parser = _Parser(expression)
    value = parser.sum()
    if parser.next():
        raise CalculationError(f"character {parser.at + 1} does not belong in an expression")
    return _written(value)


def _written(value: Fraction) -> str:
    scaled = round(abs(value) * 10**DECIMALS)
    whole, rest = divmod(scaled, 10**DECIMALS)
    sign = "-" if value < 0 and scaled else ""
    return f"{sign}{whole}" + f".{rest:0{DECIMALS}}".rstrip("0").rstrip(".")


class _Parser:
    """Recursive descent: each method reads one rule of the grammar from where the parser is, and returns its value."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self._depth = 0

    def next(self) -> str:
        """The next character that is not a blank; empty at the end."""
        while self._text[self.at : self.at + 1] == " ":
            self.at += 1
        return self._text[self.at : self.at + 1]

    def sum(self) -> Fraction:
        value = self._product()
        while (sign := self.next()) and sign in "+-":
            self.at += 1
            value = _bounded(value + self._product() if sign == "+" else value - self._product())
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while (sign := self.next()) and sign in "*/":
            self.at += 1
            factor = self._factor()
            if sign == "/" and not factor:
                raise CalculationError("division by 0")
            value = _bounded(value * factor if sign == "*" else value / factor)
        return value

    def _factor(self) -> Fraction:
        self._depth += 1
        if self._depth > DEEPEST:
            raise CalculationError(f"more than {DEEPEST} brackets or minus signs inside each other")
        value = self._signed()
        self._depth -= 1
        return value

    def _signed(self) -> Fraction:
        match self.next():
            case "-":
                self.at += 1
                return -self._factor()
            case "(":
                self.at += 1
                value = self.sum()
                if self.next() != ")":
                    raise CalculationError(f"a closing bracket is missing at character {self.at + 1}")
                self.at += 1
                return value
        return self._number()

    def _number(self) -> Fraction:
        found = _NUMBER.match(self._text, self.at)
        if found is None:
            raise CalculationError(f"a number is missing at character {self.at + 1}")
        if len(found.group().replace(".", "")) > MOST_DIGITS:
            raise CalculationError(f"a number has more than {MOST_DIGITS} digits")
        self.at = found.end()
        return Fraction(found.group())


def _bounded(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) > LARGEST:
        raise CalculationError("a number on the way is too large")
    return value
