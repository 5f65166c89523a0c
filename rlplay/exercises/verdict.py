"""Whether a learner's numbers are the engine's; if not, where they first differ and what mistake makes such numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlplay.exercises import Exercise
from rlplay.exercises.check import Case
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array

CLOSE, NEAR_ZERO = 2e-3, 1e-5
"""How far two numbers may be apart that count as equal: relative, and absolute. The ε under a division is a choice."""


BEFORE, ROWS = 2, 12
"""How many numbers are shown before the first that differs, and in all."""


@dataclass(frozen=True)
class Verdict:
    """Of `compared` numbers of the batch. `first` is the place in the row of all numbers where the first one differs;
    without it, they and the made-up ones agree. `shown` are places worth a look."""

    compared: int
    shown: range
    first: int | None = None
    remark: str = ""


def same(one: Array, other: Array) -> Array:
    """Which numbers of two arrays count as equal."""
    return np.asarray(np.isclose(one, other, rtol=CLOSE, atol=NEAR_ZERO, equal_nan=True))


def judged(
    exercise: Exercise, cases: Sequence[Case], yours: Array, engine: Array, of: Callable[[str], Array | None]
) -> Verdict:
    """The verdict about the numbers of all `cases` in a row; `of(code)` are those of another code, None if it fails."""
    compared = sum(len(case.places) for case in cases if not case.made_up)
    different = np.flatnonzero(~same(yours, engine))
    if not len(different):
        return Verdict(compared, range(min(ROWS, compared)))
    first = int(different[0])
    begin, end = (0, compared) if first < compared else (compared, len(yours))
    begin = max(begin, min(first - BEFORE, end - ROWS))
    shown = range(begin, min(begin + ROWS, end))
    return Verdict(compared, shown, first, _known(exercise, yours, engine, of) or _pattern(yours, engine))


def _known(exercise: Exercise, yours: Array, engine: Array, of: Callable[[str], Array | None]) -> str:
    """The remark about the wrong try that gives the very same numbers; "" if none does."""
    for each in exercise.wrong:
        theirs = of(each.code)
        if theirs is not None and same(yours, theirs).all() and not same(theirs, engine).all():
            return each.remark
    return ""


def _pattern(yours: Array, engine: Array) -> str:
    """What all numbers have in common that differ from the engine's; "" if nothing simple."""
    if not np.isfinite(yours).all():
        return "Some of your numbers are not finite: a division by 0, or a logarithm of 0."
    if not yours.any():
        return "All of your numbers are 0."
    large = np.abs(engine) > NEAR_ZERO
    factor = yours[large][0] / engine[large][0] if large.any() else 0.0
    if same(yours, factor * engine).all():
        return (
            "Every sign is the other way round."
            if factor == -1
            else f"Every number is {compact(factor)} times the engine's."
        )
    apart = yours[0] - engine[0]
    if same(yours, engine + apart).all():
        return f"Every number is {compact(abs(apart))} too {'high' if apart > 0 else 'low'}."
    return ""
