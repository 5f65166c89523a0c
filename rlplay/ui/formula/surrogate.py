"""The surrogate with one token's numbers, and why a token's gradient is zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlplay.algorithms.arrays import NumpyArrays
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.equations import symbols
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.symbols import Symbols, Term
from rlplay.algorithms.symbols import filled as written
from rlplay.ui.format.numbers import plain
from rlplay.ui.formula.parts import Line, Numbers, digits, note, other_gradients, stripped
from rlplay.user_code import OwnError


def value(s: Settings, numbers: Numbers) -> float | None:
    """S, the surrogate of one token, from the same function as in training; None before it is known."""
    values, chosen = numbers.values(), row(s, "surrogate")
    if values is None or chosen.compute is None:
        return None
    low, high = s.clip_range
    known = {**values, "log_ratio": values["logprobs"] - values["old_logprobs"], "epsilon": low, "epsilon_high": high}
    try:
        with np.errstate(all="ignore"):
            found = call_choice(chosen.compute, NumpyArrays, known, s)
    except (OwnError, AttributeError):
        return None
    every = np.broadcast_to(found, np.shape(values["logprobs"]))
    return float(every[numbers.place if len(every) > 1 else 0])


def filled(s: Settings, numbers: Numbers) -> list[Line]:
    """The surrogate with this token's numbers, and the effect of its gradient."""
    a, w = numbers.advantage, numbers.ratio
    if a is None:
        return []
    if w is None or numbers.logprob is None:
        return [note(f"{'ℓ' if s.surrogate == 'logp' else 'w'} appears after ④ update")]
    try:
        term = _computed(s, numbers)
    except OwnError as error:
        return [note(str(error))]
    lines: list[Line] = []
    if term is not None:
        places = digits(s)

        def number(name: str, of: float, signed: bool) -> str:
            return stripped(of, places) if signed else plain(of, places if name == "w" else 2)

        lines = [[("= ", "plain"), *parts] for parts in written(term, numbers.place, number)]
        lines[-1] += [(" = ", "plain"), (stripped(term.at(numbers.place), places), "won")]
    remarks = why_clipped(s, numbers) or [_effect(s, a), *row(s, "surrogate").unclipped(s, a, w)]
    return lines + [note(text) for text in remarks]


def why_clipped(s: Settings, numbers: Numbers) -> list[str]:
    """Why the surrogate's gradient is 0 for this token: a short head and a sentence; empty if it is not 0."""
    explain = row(s, "surrogate").clipped or row(s, "importance_sampling_level").clipped
    if not numbers.clip_state or explain is None:
        return []
    head, reason = explain(s, numbers.clip_state)
    others = other_gradients(s)
    return [head, f"{reason}, so the surrogate's gradient is zero{f'; {others}' if others else ''}."]


def _computed(s: Settings, numbers: Numbers) -> Term | None:
    """The surrogate of the token's answer; None before its numbers are known, or if it cannot run here."""
    values, chosen = numbers.values(), row(s, "surrogate")
    if values is None or chosen.compute is None:
        return None
    with np.errstate(all="ignore"):  # a result without a number is shown as ·
        found: Any = call_choice(chosen.compute, Symbols, symbols(s, values), s)
    return found if isinstance(found, Term) else None


def _effect(s: Settings, a: float) -> str:
    """The effect of the surrogate on a token that is not clipped."""
    others = other_gradients(s)
    if a == 0:
        return f"A = 0: {others or 'no gradient'}"
    what = "the surrogate " if others else ""
    return f"A > 0: {what}pulls this token up" if a > 0 else f"A < 0: {what}pushes this token down"
