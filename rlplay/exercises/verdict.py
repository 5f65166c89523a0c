"""Whether a learner's numbers are the engine's; if not, where they first differ and what mistake makes such numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rlplay.exercises import Exercise
from rlplay.exercises.check import Case, Place
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array

CLOSE, NEAR_ZERO = 2e-3, 1e-5
"""How far two numbers may be apart that count as equal: relative, and absolute. The ε under a division is a choice."""


@dataclass(frozen=True)
class Verdict:
    """Of `compared` numbers of the batch; without a `place`, they and the made-up ones agree."""

    compared: int
    place: Place | None = None
    made_up: bool = False  # the batch agrees, a made-up case does not
    yours: float = 0.0
    engine: float = 0.0
    remark: str = ""


def same(one: Array, other: Array) -> Array:
    """Which numbers of two arrays count as equal."""
    return np.asarray(np.isclose(one, other, rtol=CLOSE, atol=NEAR_ZERO, equal_nan=True))


def judged(
    exercise: Exercise, cases: Sequence[Case], yours: Array, engine: Array, of: Callable[[str], Array | None]
) -> Verdict:
    """The verdict about the numbers of all `cases` in a row; `of(code)` are those of another code, None if it fails."""
    places = [place for case in cases for place in case.places]
    made_up = [case.made_up for case in cases for _ in case.places]
    compared = made_up.count(False)
    different = np.flatnonzero(~same(yours, engine))
    if not len(different):
        return Verdict(compared)
    first = int(different[0])
    return Verdict(
        compared, places[first], made_up[first], float(yours[first]), float(engine[first]),
        _known(exercise, yours, engine, of) or _pattern(yours, engine),
    )  # fmt: skip


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
