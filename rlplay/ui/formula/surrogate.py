"""The surrogate with one token's numbers, and why a token's gradient is zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.corrections import logarithm
from rlplay.algorithms.equations import symbols, used
from rlplay.algorithms.expression_text import filled as written
from rlplay.algorithms.own_trial import SURROGATE_ARGUMENTS
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.symbols import Expression, Symbols
from rlplay.containment import OwnError
from rlplay.trace.records import Array
from rlplay.ui.format.number_cells import plain
from rlplay.ui.formula.formula_lines import Line, TokenNumbers, absent, digits, note, other_gradients, stripped


def value(s: Settings, numbers: TokenNumbers) -> float | None:
    """S, the surrogate of one token, from the same function as in training; None before it is known."""
    known = _arguments(s, numbers)
    if known is None:
        return None
    low, high = s.clip_range
    try:
        with np.errstate(all="ignore"):  # the screen writes a result that is not finite as ·
            found = call_choice(
                row(s, "surrogate").compute, NumpyArrays, {**known, "epsilon": low, "epsilon_high": high}, s
            )
        every = np.ravel(np.broadcast_to(found, known["logprobs"].shape))
    except ValueError:  # the user's function fails, or gives an array of another shape
        return None
    return float(every[numbers.place if len(every) > 1 else 0])


def filled(s: Settings, numbers: TokenNumbers) -> list[Line]:
    """The surrogate with this token's numbers, and the effect of its gradient."""
    a, w = numbers.advantage, numbers.ratio
    if a is None:
        return []
    if w is None or numbers.logprob is None:
        return [absent(numbers, "update", "w" if s.surrogate_row.has_ratio else "ℓ")]
    result, term, places = value(s, numbers), None, digits(s)
    try:
        term = _term(s, numbers)
    except OwnError as error:
        if result is None:
            return [note(str(error))]
    lines: list[Line] = [] if result is None else [[("= ", "plain"), (stripped(result, places), "won")]]
    if term is not None:

        def number(name: str, of: float, signed: bool) -> str:
            return stripped(of, places) if signed else plain(of, places if name == "w" else 2)

        lines = [[("= ", "plain"), *parts] for parts in written(term, numbers.place, number)]
        lines[-1] += [(" = ", "plain"), (stripped(term.at(numbers.place), places), "won")]
    chosen = row(s, "surrogate")
    effect = [] if chosen.always else [_effect(s, a)]  # else A alone does not say which way it goes
    remarks = why_clipped(s, numbers) or [*effect, *chosen.unclipped(s, a, w)]
    return lines + [note(text) for text in remarks]


def why_clipped(s: Settings, numbers: TokenNumbers) -> list[str]:
    """Why the surrogate's gradient is 0 for this token: a short head and a sentence; empty if it is not 0."""
    explain = row(s, "surrogate").clipped or row(s, "importance_sampling_level").clipped
    if not numbers.clip_state or explain is None:
        return []
    head, reason = explain(s, numbers.clip_state)
    others = other_gradients(s)
    return [head, f"{reason}, so the surrogate's gradient is zero{f'; {others}' if others else ''}."]


def _arguments(s: Settings, numbers: TokenNumbers) -> Mapping[str, Array] | None:
    """The quantities of the token's answer by name, [1, L]; None if the surrogate needs another or cannot run here."""
    values = numbers.values()
    if values is None or row(s, "surrogate").compute is None:
        return None
    known = {name: np.atleast_2d(each) for name, each in values.items()}
    known["log_ratio"] = known["logprobs"] - known["old_logprobs"]
    with np.errstate(divide="ignore"):
        known["log_correction"] = logarithm(NumpyArrays, known.pop("correction", np.ones((1, 1))))
    missing = any(name in SURROGATE_ARGUMENTS and name not in known for name in used(s))
    return None if missing else known


def _term(s: Settings, numbers: TokenNumbers) -> Expression | None:
    """The surrogate of the token's answer as an equation with numbers; None as `_arguments`.

    Raises OwnError if the user's function is at fault or uses what no equation has a symbol for.
    """
    known = _arguments(s, numbers)
    if known is None:
        return None
    with np.errstate(all="ignore"):
        found: Any = call_choice(row(s, "surrogate").compute, Symbols, symbols(s, known), s)
    return found if isinstance(found, Expression) else None


def _effect(s: Settings, a: float) -> str:
    """The effect of the surrogate on a token that is not clipped."""
    others = other_gradients(s)
    if a == 0:
        return f"A = 0: {others or 'no gradient'}"
    what = "the surrogate " if others else ""
    return f"A > 0: {what}pulls this token up" if a > 0 else f"A < 0: {what}pushes this token down"
