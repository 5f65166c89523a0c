"""One step of Q-learning or SARSA: the TD error of a move and what it does to the move's value."""

from __future__ import annotations

from rlplay.algorithms.equations import equation, terms, value_error
from rlplay.algorithms.expression_text import equation as equation_of
from rlplay.algorithms.expression_text import filled
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import moved
from rlplay.trace.numbers import number
from rlplay.ui.format.number_cells import plain
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, bracketed, note, stripped

_PLACES = 3
"""Decimals: a step changes a value by a small part of it."""


def action_value(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """δ and the step in symbols, then with the recorded numbers of this move, as far as known."""
    lines: list[Line] = [[(f"δ = {equation_of(value_error(s))}", "plain")]]
    value, delta = numbers.value, numbers.advantage
    if value is None or delta is None:
        return [*lines, note("numbers appear after ③ credit")]
    known = {"reward": numbers.reward, "following": numbers.following, "value": value}

    def written(_name: str, of: float, signed: bool) -> str:
        return stripped(of, _PLACES) if signed else plain(of, _PLACES)

    lines += [[("= ", "plain"), *parts] for parts in filled(value_error(s, known), 0, written)]
    lines[-1] += [(" = ", "plain"), (stripped(delta, _PLACES), "won")]
    lines.append([(equation("new Q(s, a)", terms(s)["new Q(s, a)"]), "plain")])
    after = moved(value, s.learning_rate, delta)
    step = f"= {plain(value, _PLACES)} + {number(s.learning_rate)}·{bracketed(delta, _PLACES)} = "
    return [*lines, [(step, "plain"), (stripped(after, _PLACES), "won")]]
