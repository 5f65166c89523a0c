"""The number that a claim speaks of, taken from the records of the run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from rlplay.scenario.claim import LensValue, MetricValue, Point, Quantity, ShareValue, SquareValue, TokenProbability
from rlplay.scenario.shares import question_of, value_of
from rlplay.trace.chosen_answers import answers_of
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import describe, titled
from rlplay.trace.records import Array
from rlplay.trace.teachers import AnyTeachingAnswer, TakeAway, Teach
from rlplay.trace.text import quote
from rlplay.trace.update import Update


class Series(Protocol):
    """The part of a run that an expectation reads; `rlplay.trace.history.History` is one."""

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """Updates and values of a metric on the live branch, in order; empty if it has none."""

    def abandoned(self, name: str) -> Sequence[tuple[list[int], list[float]]]:
        """The same of the branches that rewinds discarded, oldest first."""


Asked = Callable[[Teach | TakeAway], AnyTeachingAnswer | None]
"""What the engine answered to a question; None if nobody has asked it."""


class Unasked(LookupError):
    """A claim is about what only the engine knows, and it was not asked."""


def nobody(_question: Teach | TakeAway) -> None:
    """There is no engine to ask."""


class Measured(NamedTuple):
    """The measured value: a number alone, its difference from `base`, or its ratio to `base`."""

    value: float
    now: float
    base: float | None = None
    is_ratio: bool = False
    unit: str = ""


def measure(quantity: Quantity, history: Series, update: Update | None, asked: Asked = nobody) -> Measured:
    """The value of `quantity`, where `update` is the last one. Raises LookupError with the reason if there is none."""
    match quantity:
        case MetricValue():
            return _metric(quantity, history, update)
        case TokenProbability():
            return _token(quantity, update)
        case LensValue():
            return _lens(quantity, update)
        case SquareValue():
            return _square(quantity, update)
        case ShareValue():
            return _share(quantity, update, asked)


def _metric(quantity: MetricValue, history: Series, shown: Update | None) -> Measured:
    update, value = _point(quantity.metric, quantity.at, history)
    row = describe(quantity.metric)
    unit = row.unit if row is not None else ""
    if unit == "tokens" and shown is not None:  # no metric counts the squares, which are tokens, too
        unit = f"{shown.step_word}s"
    if quantity.minus_metric is not None:
        _, base = _point(quantity.minus_metric, update, history)
        return Measured(value - base, value, base, unit=unit)
    against = quantity.ratio_to if quantity.minus is None else quantity.minus
    if against is None:
        return Measured(value, value, unit=unit)
    if against == "undone":
        other, base = update, _undone(quantity.metric, update, history)
    else:
        other, base = _point(quantity.metric, against, history)
    if quantity.ratio_to is None:
        return Measured(value - base, value, base, unit=unit)
    if base == 0:
        raise LookupError(f"{titled(quantity.metric)} at update {other} is 0 and cannot be a divisor")
    return Measured(value / base, value, base, True, unit)


def _point(name: str, at: Point, history: Series) -> tuple[int, float]:
    updates, values = history.series(name)
    if not len(updates):
        raise LookupError(f"{titled(name)} has not been recorded")
    if isinstance(at, int):
        if at not in list(updates):
            raise LookupError(f"{titled(name)} has not been recorded at update {at}")
        index = list(updates).index(at)
    else:
        known = np.asarray(values, dtype=np.float64)
        highest, lowest = (int(np.argmax(np.where(np.isnan(each), -np.inf, each))) for each in (known, -known))
        index = {"first": 0, "last": -1, "highest": highest, "lowest": lowest}[at]
    return int(updates[index]), float(values[index])


def _undone(name: str, update: int, history: Series) -> float:
    """The value at `update` of the branch that was given up last."""
    for updates, values in reversed(history.abandoned(name)):
        if update in list(updates):
            return float(values[list(updates).index(update)])
    raise LookupError(f"no run that was undone has {titled(name)} at update {update}")


_NAMED = "reward", "advantage units"
"""Units of lenses that a claim's text names already."""


def _lens(quantity: LensValue, update: Update | None) -> Measured:
    lens = LENSES[quantity.lens]
    values = None if update is None or update.sampled is None else lens.values(update)
    if values is None or update is None or update.sampled is None:
        raise LookupError(f"no update with {lens.title} has been recorded")
    if quantity.of == "token":
        if quantity.completion >= update.completions:
            raise LookupError(f"the update has no answer {quantity.completion}")
        start, end = (int(x) for x in update.sampled.offsets[quantity.completion : quantity.completion + 2])
        if start + quantity.token >= end:
            raise LookupError(f"answer {quantity.completion} has no token {quantity.token}")
        value = float(values[start + quantity.token])
    else:
        known = (update.sampled.mask == (quantity.of != "others")) & ~np.isnan(values)
        if not known.any():
            raise LookupError(f"no token has {lens.title}")
        parts = np.split(np.where(known, values, np.nan), update.sampled.offsets[1:-1])
        answers = [own for part in parts if len(own := part[~np.isnan(part)])]
        value = float(_OVER[quantity.of](answers))
    if math.isnan(value):
        raise LookupError(f"this token has no {lens.title}")
    return Measured(value, value, unit="" if lens.unit in _NAMED else lens.unit)


_OVER: dict[str, Callable[[list[Array]], Any]] = {
    "mean": lambda answers: np.concatenate(answers).mean(),
    "min": lambda answers: min(map(np.min, answers)),
    "max": lambda answers: max(map(np.max, answers)),
    "range": lambda answers: max(map(np.ptp, answers)),
    "others": lambda answers: max(map(np.max, map(np.abs, answers))),
}
"""What `of` makes of the values of each answer's own tokens; "others" is about those that the policy did not sample."""


def _square(quantity: SquareValue, update: Update | None) -> Measured:
    survey = None if update is None or update.finished is None else update.finished.survey
    if survey is None or quantity.square not in survey.states:
        raise LookupError(f"no policy on square {quantity.square} has been recorded")
    row = survey.states.index(quantity.square)
    if quantity.of == "best":
        if survey.best_values is None:
            raise LookupError("no policy has a finite best value here")
        return Measured(float(survey.best_values[row]), float(survey.best_values[row]))
    if quantity.of == "value":
        if survey.values is None:
            raise LookupError("this algorithm trains no critic")
        return Measured(float(survey.values[row]), float(survey.values[row]))
    if quantity.move not in survey.actions:
        raise LookupError(f"there is no move {quantity.move}; the moves are {', '.join(survey.actions)}")
    value = math.exp(float(survey.logprobs[row, survey.actions.index(quantity.move)]))
    return Measured(value, value)


def _share(quantity: ShareValue, update: Update | None, asked: Asked) -> Measured:
    if update is None:
        raise LookupError("no update has finished")
    try:
        answer = asked(question_of(quantity, update))
        if answer is None:
            raise Unasked("the engine was not asked")
        value, base = value_of(quantity, update, answer)
    except ValueError as error:
        raise LookupError(str(error)) from None
    return Measured(value if base is None else value - base, value, base, unit="nats")


def _token(quantity: TokenProbability, update: Update | None) -> Measured:
    if quantity.minus is None:
        mass = _mass(quantity, update, after=quantity.at == "after")
        return Measured(mass, mass)
    after, before = _mass(quantity, update, after=True), _mass(quantity, update, after=False)
    return Measured(after - before, after, before)


def _mass(quantity: TokenProbability, update: Update | None, after: bool) -> float:
    if update is None or update.sampled is None or update.finished is None:
        raise LookupError("no update has finished")
    sampled, finished = update.sampled, update.finished
    start, wanted = 0, quantity.prompt or sampled.prompts[0]
    rows = set(answers_of(update, wanted, "same prompt"))
    for row in (int(row) for row in finished.rows):
        length = int(sampled.offsets[row + 1] - sampled.offsets[row])
        if row in rows and length > quantity.position:
            break
        start += length
    else:
        raise LookupError(f"no re-evaluated answer to {quote(wanted)} has a token {quantity.position}")
    place = int(sampled.offsets[row]) + quantity.position
    logprobs = finished.top_logprobs[start + quantity.position] if after else sampled.top_logprobs[place]
    masses = [math.exp(float(logprob)) for logprob in logprobs]
    meant = [sampled.pieces.get(int(token)) == quantity.probability for token in sampled.top_ids[place]]
    if not any(meant):
        raise LookupError(f"{quote(quantity.probability)} is not among the {len(meant)} candidates kept")
    sides = {"token": True, "others": False}
    return math.fsum(m for m, is_it in zip(masses, meant, strict=True) if sides.get(quantity.of, is_it) == is_it)
