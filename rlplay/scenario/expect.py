"""Expectations: what a scenario claims will be seen, checked against what was recorded.

A metric of the run, at an update (`last` if left out), alone or compared with another update:

```yaml
- expect: {text: Held-out accuracy ends high, metric: eval_reward, at: last, above: 0.85}
- expect: {text: Answers grow longer, metric: completions/mean_length, minus: first, above: 4}
- expect: {text: Praise multiplies, metric: rewards/praise/mean, at: 25, ratio_to: 1, above: 10}
```

The probability of one token as an answer to the first prompt, before or after the last update:

```yaml
- expect: {text: '"4" rises', probability: "4", minus: before, above: 0.01}
- expect: {text: The others lose it, probability: "4", of: others, minus: before, below: -0.01}
- expect: {text: Nothing is lost, probability: "4", of: all, minus: before, equals: 0}
```

`of` is `token` (the mass of every token with that text), `others` or `all`; `position` counts completion tokens
from 0. Only recorded candidates can be summed: to mean the whole vocabulary, set `candidates` that high.
A bound is `above`, `below` or `equals` (within 0.0001); where several are given, all must hold. After a rewind,
`first` and `last` speak of the branch that is alive.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol

import msgspec

from rlplay.trace.metrics import titled
from rlplay.trace.update import Update

TOLERANCE = 1e-4


class Series(Protocol):
    """What an expectation reads of a run: `rlplay.trace.history.History` is one."""

    def series(self, name: str) -> tuple[list[int], list[float]]:
        """Updates and values of a metric, in order, of the live branch; empty if there is none."""


class Bounds(msgspec.Struct, frozen=True):
    """What the value has to be; at least one is given."""

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

    def __str__(self) -> str:
        given = (("above", self.above), ("below", self.below), ("equal to", self.equals))
        return " and ".join(f"{word} {_written(bound)}" for word, bound in given if bound is not None)


Point = int | Literal["first", "last"]


class MetricValue(msgspec.Struct, frozen=True):
    """A logged number at an update, alone or against another update."""

    metric: str
    at: Point = "last"
    minus: Point | None = None
    ratio_to: Point | None = None


class TokenProbability(msgspec.Struct, frozen=True):
    """Probability mass at one position of an answer to the first prompt, before or after the last update."""

    probability: str
    of: Literal["token", "others", "all"] = "token"
    position: int = 0
    at: Literal["before", "after"] = "after"
    minus: Literal["before"] | None = None


class Expect(msgspec.Struct, frozen=True):
    """One claim: `text` says it in words."""

    text: str
    quantity: MetricValue | TokenProbability
    bounds: Bounds


class Outcome(msgspec.Struct, frozen=True):
    """How a claim fared. `passed` is None if it was not reached, `value` is None if there is nothing to measure."""

    text: str
    passed: bool | None
    value: float | None
    sentence: str


def parse_expect(argument: Any) -> Expect:
    """An expectation from its mapping. Raises ValueError, one line."""
    if not isinstance(argument, dict) or not isinstance(argument.get("text"), str):
        raise ValueError("expect takes a mapping with text, a metric or a probability, and above, below or equals")
    if ("metric" in argument) == ("probability" in argument):
        raise ValueError("expect takes either a metric or a probability")
    rest = {name: value for name, value in argument.items() if name != "text"}
    kind: type[MetricValue | TokenProbability] = MetricValue if "metric" in rest else TokenProbability
    bounds = {name: rest.pop(name) for name in Bounds.__struct_fields__ if name in rest}
    if unknown := [name for name in rest if name not in kind.__struct_fields__]:
        raise ValueError(f"expect does not know {unknown[0]!r} here; it knows {', '.join(kind.__struct_fields__)}")
    if all(value is None for value in bounds.values()):
        raise ValueError("expect needs above, below or equals")
    if rest.get("minus") is not None and rest.get("ratio_to") is not None:
        raise ValueError("expect takes minus or ratio_to, not both")
    try:
        return Expect(" ".join(argument["text"].split()), msgspec.convert(rest, kind), msgspec.convert(bounds, Bounds))
    except msgspec.ValidationError as error:
        raise ValueError(f"expect: {error}") from None


def check(expect: Expect, history: Series, update: Update | None) -> Outcome:
    """Whether the claim holds for what has been recorded; what cannot be measured does not hold."""
    try:
        if isinstance(expect.quantity, MetricValue):
            what, value = _metric(expect.quantity, history)
        else:
            what, value = _token(expect.quantity, update)
    except LookupError as error:
        return Outcome(expect.text, False, None, f"{error.args[0]}: nothing to compare")
    passed = expect.bounds.hold(value)
    verdict = "holds" if passed else "does not hold"
    return Outcome(expect.text, passed, value, f"{what} {_written(value)}; {expect.bounds}: {verdict}")


def not_reached(expect: Expect) -> Outcome:
    """The outcome of a claim whose step was never played."""
    return Outcome(expect.text, None, None, "not reached")


def _metric(quantity: MetricValue, history: Series) -> tuple[str, float]:
    update, value = _point(quantity.metric, quantity.at, history)
    what = f"{titled(quantity.metric)} at update {update}"
    if quantity.minus is not None:
        other, base = _point(quantity.metric, quantity.minus, history)
        return f"{_change(quantity.metric, (other, base), (update, value))}, a difference of", value - base
    if quantity.ratio_to is not None:
        other, base = _point(quantity.metric, quantity.ratio_to, history)
        if base == 0:
            raise LookupError(f"{titled(quantity.metric)} at update {other} is 0, which has no multiple")
        return f"{_change(quantity.metric, (other, base), (update, value))}, a ratio of", value / base
    return f"{what} is", value


def _change(name: str, before: tuple[int, float], after: tuple[int, float]) -> str:
    (then, base), (now, value) = before, after
    return f"{titled(name)} from {_written(base)} at update {then} to {_written(value)} at update {now}"


def _written(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


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


def _token(quantity: TokenProbability, update: Update | None) -> tuple[str, float]:
    named = {"token": f"P({quantity.probability!r})", "others": f"P(not {quantity.probability!r})", "all": "Σ P"}
    what = f"{named[quantity.of]}{f' at position {quantity.position}' if quantity.position else ''}"
    if quantity.minus is None:
        return f"{what} {quantity.at} the update is", _mass(quantity, update, after=quantity.at == "after")
    after, before = _mass(quantity, update, after=True), _mass(quantity, update, after=False)
    return f"{what} from {_written(before)} to {_written(after)} in the update, a difference of", after - before


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
