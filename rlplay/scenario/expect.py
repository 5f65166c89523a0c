"""Expectations: the claims of a scenario, checked against the records of the run.

A metric of the run, at an update (`last` if left out), alone or compared with another update:

```yaml
- expect: {text: Held-out reward at the end, metric: eval_reward, at: last, above: 0.85}
- expect: {text: Answers are ≥ 4 tokens longer, metric: completions/mean_length, minus: first, above: 4}
- expect: {text: Praise multiplies, metric: rewards/praise/mean, at: 25, ratio_to: 1, above: 10}
```

The numbers complete the `text`: "Praise multiplies: 0.344 → 30.9 (90×, expected > 10×)". The text should name the
quantity. If it also names the bound, the numbers do not repeat it.

The probability of one token as an answer to the first prompt, before or after the last update:

```yaml
- expect: {text: '"4" rises', probability: "4", minus: before, above: 0.01}
- expect: {text: The others lose it, probability: "4", of: others, minus: before, below: -0.01}
- expect: {text: Nothing is lost, probability: "4", of: all, minus: before, equals: 0}
```

One token's statistic in the last update, any lens by name; or its mean, least or largest value over the moves and
tokens that the policy sampled (`of: mean`, `min` or `max`):

```yaml
- expect: {text: The first return, lens: returns, completion: 0, token: 0, equals: 5.23}
- expect: {text: Every token is pulled alike, lens: credit, of: min, above: 0.9}
```

A world's square after the last update: the probability of a move there, or the critic's value:

```yaml
- expect: {text: The way out of a1, square: a1, move: →, above: 0.9}
- expect: {text: The start's value, square: a1, of: value, above: 0.85}
```

A metric may also be compared with the branch that was given up last: `minus: undone`, at the same update.

`of` of a probability is `token` (the mass of every token with that text), `others` or `all`; `position` counts
completion tokens from 0. Only recorded candidates are summed: for the whole vocabulary, set `candidates` to its size.
A bound is `above`, `below` or `equals` (within 0.0001); several must all hold. After a rewind, `first` and `last` mean
the live branch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, get_args, get_type_hints

import msgspec
import numpy as np

from rlplay.spelling import did_you_mean
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS, describe, titled
from rlplay.trace.update import Update

TOLERANCE = 1e-4


class Series(Protocol):
    """The part of a run that an expectation reads; `rlplay.trace.history.History` is one."""

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """Updates and values of a metric on the live branch, in order; empty if it has none."""

    def abandoned(self, name: str) -> Sequence[tuple[list[int], list[float]]]:
        """The same of the branches that rewinds discarded, oldest first."""


class Bounds(msgspec.Struct, frozen=True):
    """The bounds of the value, at least one."""

    above: float | None = None
    below: float | None = None
    equals: float | None = None

    def hold(self, value: float) -> bool:
        """Whether `value` meets every bound; NaN meets none."""
        return not math.isnan(value) and (
            (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
            and (self.equals is None or abs(value - self.equals) <= TOLERANCE)
        )

    @property
    def given(self) -> list[tuple[str, float]]:
        """The bounds that are set, each with its sign."""
        signs = ((">", self.above), ("<", self.below), ("=", self.equals))
        return [(sign, bound) for sign, bound in signs if bound is not None]


Point = int | Literal["first", "last"]
Undone = Literal["undone"]


class MetricValue(msgspec.Struct, frozen=True):
    """A metric at an update, alone or compared with another update."""

    metric: str
    at: Point = "last"
    minus: Point | Undone | None = None
    ratio_to: Point | Undone | None = None


class TokenProbability(msgspec.Struct, frozen=True):
    """Probability mass at one position of an answer to the first prompt, before or after the last update."""

    probability: str
    of: Literal["token", "others", "all"] = "token"
    position: int = 0
    at: Literal["before", "after"] = "after"
    minus: Literal["before"] | None = None


class LensValue(msgspec.Struct, frozen=True):
    """A statistic of the last update: of one token, or over all that the policy sampled."""

    lens: str
    completion: int = 0
    token: int = 0
    of: Literal["token", "mean", "min", "max"] = "token"


class SquareValue(msgspec.Struct, frozen=True):
    """The policy or the critic on a square of a world, after the last update."""

    square: str
    move: str = ""
    of: Literal["probability", "value"] = "probability"


Quantity = MetricValue | TokenProbability | LensValue | SquareValue


class Expect(msgspec.Struct, frozen=True):
    """One claim: `text` says it in words."""

    text: str
    quantity: Quantity
    bounds: Bounds


class Outcome(msgspec.Struct, frozen=True):
    """The result of a claim. `passed` is None if the script did not reach it, `value` is None if there is no number.

    `found` completes the sentence that `text` begins: the numbers, or why there are none.
    """

    text: str
    passed: bool | None
    value: float | None
    found: str

    @property
    def finding(self) -> str:
        """The whole sentence."""
        return f"{self.text}: {self.found}"


_KINDS: dict[str, type[Quantity]] = {
    "metric": MetricValue,
    "probability": TokenProbability,
    "lens": LensValue,
    "square": SquareValue,
}


def parse_expect(argument: Any) -> Expect:
    """An expectation from its mapping. Raises ValueError, one line."""
    if not isinstance(argument, dict) or not isinstance(argument.get("text"), str):
        raise ValueError(f"expect takes a mapping with text, one of {', '.join(_KINDS)}, and above, below or equals")
    named = [kind for name, kind in _KINDS.items() if name in argument]
    if len(named) != 1:
        raise ValueError(f"expect takes exactly one of {', '.join(_KINDS)}")
    rest, kind = {name: value for name, value in argument.items() if name != "text"}, named[0]
    bounds = {name: rest.pop(name) for name in Bounds.__struct_fields__ if name in rest}
    if unknown := [name for name in rest if name not in kind.__struct_fields__]:
        raise ValueError(f"expect does not know {unknown[0]!r} here; it knows {', '.join(kind.__struct_fields__)}")
    if all(value is None for value in bounds.values()):
        raise ValueError("expect needs above, below or equals")
    if rest.get("minus") is not None and rest.get("ratio_to") is not None:
        raise ValueError("expect takes minus or ratio_to, not both")
    try:
        claim = Expect(" ".join(argument["text"].split()), msgspec.convert(rest, kind), msgspec.convert(bounds, Bounds))
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        raise ValueError(f"{name} of expect takes {_takes(kind, name)}; got {argument[name]!r}") from None
    _check_values(claim, rest | bounds)
    return claim


def _takes(kind: type[Quantity], name: str) -> str:
    """What a key of a claim takes, in words."""
    if name in Bounds.__struct_fields__:
        return "a number"
    hint = get_type_hints(kind)[name]
    parts = [part for each in (get_args(hint) or (hint,)) for part in (get_args(each) or (each,))]
    words = {int: "a whole number from 0", str: "text"}
    return " or ".join(words.get(part, str(part)) for part in parts if part is not type(None))


def _check_values(claim: Expect, given: dict[str, Any]) -> None:
    """Raises ValueError where a value has the right type and yet cannot be meant."""
    quantity, bounds = claim.quantity, claim.bounds
    for name, value in given.items():
        negative = name not in Bounds.__struct_fields__ and isinstance(value, int) and value < 0
        if negative or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError(f"{name} of expect takes {_takes(type(quantity), name)}; got {value!r}")
    if bounds.above is not None and bounds.below is not None and bounds.above >= bounds.below:
        raise ValueError(f"no value is above {bounds.above:g} and below {bounds.below:g}")
    if isinstance(quantity, LensValue) and quantity.lens not in LENSES:
        raise ValueError(f"unknown lens {quantity.lens!r}{did_you_mean(quantity.lens, list(LENSES))}")
    if isinstance(quantity, MetricValue) and describe(quantity.metric) is None:
        raise ValueError(f"unknown metric {quantity.metric!r}{did_you_mean(quantity.metric, list(METRICS))}")


def check(expect: Expect, history: Series, update: Update | None) -> Outcome:
    """Whether the records support the claim; a claim that cannot be measured fails."""
    try:
        match expect.quantity:
            case MetricValue():
                measured = _metric(expect.quantity, history, _in_a_world(update))
            case TokenProbability():
                measured = _token(expect.quantity, update)
            case LensValue():
                measured = _lens(expect.quantity, update)
            case SquareValue():
                measured = _square(expect.quantity, update)
    except LookupError as error:
        return Outcome(expect.text, False, None, f"{error.args[0]}, so there is nothing to compare")
    passed = expect.bounds.hold(measured.value)
    return Outcome(expect.text, passed, measured.value, _found(expect, measured, passed))


def not_reached(expect: Expect) -> Outcome:
    """The outcome of a claim that the script did not reach."""
    return Outcome(expect.text, None, None, "not reached")


class _Measured(NamedTuple):
    """The measured value: a number alone, its difference from `base`, or its ratio to `base`."""

    value: float
    now: float
    base: float | None = None
    is_ratio: bool = False
    unit: str = ""


def _found(expect: Expect, measured: _Measured, passed: bool) -> str:
    """The numbers that complete the claim's text."""
    unit = f" {measured.unit}" * bool(measured.unit)
    remarks = []
    if measured.base is not None:
        remarks.append(_change(measured, expect.bounds))
    # The numbers themselves show a rise or a fall.
    unnamed = [bound for _, bound in expect.bounds.given if not _names(expect.text, bound)]
    if not passed or any(bound != 0 or measured.base is None for bound in unnamed):
        remarks.append(f"expected {_expected(measured, expect.bounds)}")
    since = "" if measured.base is None else f"{_written(measured.base)} → "
    return f"{since}{_written(measured.now)}{unit}" + (f" ({', '.join(remarks)})" if remarks else "")


def _change(measured: _Measured, bounds: Bounds) -> str:
    if measured.is_ratio:
        return f"{_written(measured.value)}×"
    same = measured.value == 0 or (bounds.equals == 0 and abs(measured.value) <= TOLERANCE)
    return "no change" if same else _signed(measured.value)


def _expected(measured: _Measured, bounds: Bounds) -> str:
    written = _signed if measured.base is not None and not measured.is_ratio else _written
    return " and ".join(f"{sign} {written(bound)}{'×' * measured.is_ratio}" for sign, bound in bounds.given)


def _names(text: str, bound: float) -> bool:
    """Whether a claim's text contains the number."""
    return re.search(rf"(?<![\d.]){re.escape(f'{abs(bound):g}')}(?!\d|\.\d)", text) is not None


def _written(value: float) -> str:
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}").replace("-", "−")


def _signed(value: float) -> str:
    return f"+{_written(value)}" if value > 0 else _written(value)


def _in_a_world(update: Update | None) -> bool:
    """Whether the answers of `update` are walks: only a world's policy is recorded on every square."""
    return update is not None and update.sampled is not None and update.sampled.survey is not None


def _metric(quantity: MetricValue, history: Series, in_a_world: bool) -> _Measured:
    update, value = _point(quantity.metric, quantity.at, history)
    row = describe(quantity.metric)
    unit = row.unit if row is not None else ""
    if in_a_world and unit == "tokens":  # no metric counts the squares, which are tokens, too
        unit = "moves"
    against = quantity.ratio_to if quantity.minus is None else quantity.minus
    if against is None:
        return _Measured(value, value, unit=unit)
    if against == "undone":
        other, base = update, _undone(quantity.metric, update, history)
    else:
        other, base = _point(quantity.metric, against, history)
    if quantity.ratio_to is None:
        return _Measured(value - base, value, base, unit=unit)
    if base == 0:
        raise LookupError(f"{titled(quantity.metric)} at update {other} is 0 and cannot be a divisor")
    return _Measured(value / base, value, base, True, unit)


def _point(name: str, at: Point, history: Series) -> tuple[int, float]:
    updates, values = history.series(name)
    if not len(updates):
        raise LookupError(f"{titled(name)} has not been recorded")
    if isinstance(at, int):
        if at not in list(updates):
            raise LookupError(f"{titled(name)} has not been recorded at update {at}")
        index = list(updates).index(at)
    else:
        index = 0 if at == "first" else -1
    return int(updates[index]), float(values[index])


def _undone(name: str, update: int, history: Series) -> float:
    """The value at `update` of the branch that was given up last."""
    for updates, values in reversed(history.abandoned(name)):
        if update in list(updates):
            return float(values[list(updates).index(update)])
    raise LookupError(f"no run that was undone has {titled(name)} at update {update}")


def _lens(quantity: LensValue, update: Update | None) -> _Measured:
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
        own = values[(update.sampled.mask == 1) & ~np.isnan(values)]
        if not len(own):
            raise LookupError(f"no token has {lens.title}")
        value = float(own.mean() if quantity.of == "mean" else own.min() if quantity.of == "min" else own.max())
    if math.isnan(value):
        raise LookupError(f"this token has no {lens.title}")
    return _Measured(value, value, unit=lens.unit)


def _square(quantity: SquareValue, update: Update | None) -> _Measured:
    survey = None if update is None or update.finished is None else update.finished.survey
    if survey is None or quantity.square not in survey.states:
        raise LookupError(f"no policy on square {quantity.square} has been recorded")
    row = survey.states.index(quantity.square)
    if quantity.of == "value":
        if survey.values is None:
            raise LookupError("this algorithm trains no critic")
        return _Measured(float(survey.values[row]), float(survey.values[row]))
    if quantity.move not in survey.actions:
        raise LookupError(f"there is no move {quantity.move}; the moves are {', '.join(survey.actions)}")
    value = math.exp(float(survey.logprobs[row, survey.actions.index(quantity.move)]))
    return _Measured(value, value)


def _token(quantity: TokenProbability, update: Update | None) -> _Measured:
    if quantity.minus is None:
        mass = _mass(quantity, update, after=quantity.at == "after")
        return _Measured(mass, mass)
    after, before = _mass(quantity, update, after=True), _mass(quantity, update, after=False)
    return _Measured(after - before, after, before)


def _mass(quantity: TokenProbability, update: Update | None, after: bool) -> float:
    if update is None or update.sampled is None or update.finished is None:
        raise LookupError("no update has finished")
    sampled, finished = update.sampled, update.finished
    start = 0
    for row in (int(row) for row in finished.rows):
        length = int(sampled.offsets[row + 1] - sampled.offsets[row])
        if sampled.group[row] == 0 and length > quantity.position:
            break
        start += length
    else:
        raise LookupError(f"no re-evaluated answer to the first prompt has a token {quantity.position}")
    place = int(sampled.offsets[row]) + quantity.position
    logprobs = finished.top_logprobs[start + quantity.position] if after else sampled.top_logprobs[place]
    masses = [math.exp(float(logprob)) for logprob in logprobs]
    meant = [sampled.pieces.get(int(token)) == quantity.probability for token in sampled.top_ids[place]]
    if not any(meant):
        raise LookupError(f"{quantity.probability!r} is not among the {len(meant)} candidates kept")
    wanted = {"token": True, "others": False}
    return math.fsum(m for m, is_it in zip(masses, meant, strict=True) if wanted.get(quantity.of, is_it) == is_it)
