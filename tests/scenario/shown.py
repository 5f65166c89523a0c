"""An equation as the screen shows it, evaluated: what its symbols mean is written down here once more."""

from __future__ import annotations

import math
import re
from typing import Any

_WORDS = {
    "−": "-", "·": "*", "²": "**2", "³": "**3", "≥": ">=", "≤": "<=", "log σ(": "log_sigmoid(", "log W": "log_W",
    "σ(": "sigmoid(", "ℓ_old": "l_old", "ℓ_ref": "l_ref", "ℓ": "l",
    "log odds of exp(": "odds_of(", "′": "_ranked",
}  # fmt: skip


def evaluated(equation: str, answer: dict[str, Any], place: int = 0) -> float:
    """The value of an equation for the token at `place` of an answer, whose symbols are numbers or lists by token."""
    text = equation.replace("sg[", "(").replace("]", ")")
    for shown, written in _WORDS.items():
        text = text.replace(shown, written)
    text = re.sub(r"\bp\w*/p\w*", r"(\g<0>)", text)
    text = re.sub(r"\|(.*?)\|", r"abs(\1)", text)
    main, *definitions = re.split(r", (?=[\w .]+ = )", text)
    main = re.sub(r"\blog (\d[\d.]*)", r"log(\1)", main)
    named = dict(definition.split(" = ", 1) for definition in definitions)

    def at(expression: str, t: int) -> Any:
        known = {name: value[t] if isinstance(value, list) else value for name, value in answer.items()}
        names = _Names(known, lambda name: at(named[name], t), named)
        return eval(_over(expression), {"__builtins__": {}}, _with(names, lambda inner: [at(inner, i) for i in tokens]))

    tokens = range(max(len(value) for value in answer.values() if isinstance(value, list)))
    return float(at(main, place))


def _over(expression: str) -> str:
    """Σ of x over the answer, mean of x over the answer: functions of x as text."""
    pattern = re.compile(r"(Σ|mean) of ((?:(?!(?:Σ|mean) of ).)*?) over the answer")
    while found := pattern.search(expression):
        function = "total" if found[1] == "Σ" else "average"
        expression = expression[: found.start()] + f"{function}({found[2]!r})" + expression[found.end() :]
    return expression


class _Names(dict[str, Any]):
    """The symbols, those that the equation defines itself included."""

    def __init__(self, known: dict[str, Any], define: Any, named: dict[str, str]) -> None:
        super().__init__(known)
        self._define, self._named = define, named

    def __missing__(self, name: str) -> Any:
        if name == "W":
            return math.exp(self._define("log_W"))
        if name not in self._named:
            raise KeyError(name)
        return self._define(name)


def _with(names: _Names, each: Any) -> _Names:
    def log_sigmoid(x: float) -> float:
        return min(x, 0.0) - math.log1p(math.exp(-abs(x)))

    names |= {
        "min": min, "max": max, "exp": math.exp, "log": math.log, "tanh": math.tanh, "log_sigmoid": log_sigmoid,
        "sigmoid": lambda x: math.exp(log_sigmoid(x)), "clip": lambda x, low, high: min(max(x, low), high),
        "abs": abs, "odds_of": lambda x: x - math.log(-math.expm1(x)),
        "total": lambda inner: sum(each(inner)), "average": lambda inner: sum(each(inner)) / len(each(inner)),
    }  # fmt: skip
    return names
