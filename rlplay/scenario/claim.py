"""The claims of a scenario: how a script writes them.

A metric of the run, at an update (`last` if left out), alone or compared with another update:

```yaml
- expect: {text: Held-out reward at the end, metric: eval_reward, at: last, above: 0.85}
- expect: {text: Answers are ≥ 4 tokens longer, metric: completions/mean_length, minus: first, above: 4}
- expect: {text: Praise multiplies, metric: rewards/praise/mean, at: 25, ratio_to: 1, above: 10}
- expect: {text: The largest step so far, metric: kl_old_exact, at: highest, below: 0.0101}
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
tokens that the policy sampled (`of: mean`, `min` or `max`); or the largest difference between two tokens of the same
answer (`of: range`); or the largest magnitude over the tokens that the policy did not sample (`of: others`):

```yaml
- expect: {text: The first return, lens: returns, completion: 0, token: 0, equals: 5.23}
- expect: {text: Every token is pulled alike, lens: credit, of: min, above: 0.9}
- expect: {text: All tokens of an answer alike, lens: advantages, of: range, equals: 0}
- expect: {text: The environment's words get none, lens: credit, of: others, equals: 0}
```

A world's square after the last update: the probability of a move there, the critic's value, or V*, the value of the
best policy, which follows from the world's rules:

```yaml
- expect: {text: The way out of a1, square: a1, move: →, above: 0.9}
- expect: {text: The start's value, square: a1, of: value, above: 0.85}
- expect: {text: V* of the start, square: a1, of: best, equals: 0.9020}
```

A metric may also be compared with the branch that was given up last, at the same update (`minus: undone`), or with
another metric at the same update:

```yaml
- expect: {text: Loose less strict, metric: rewards/mentioned/mean, minus_metric: gold/correct/mean, above: 0.5}
```

What moved a token in the last update: the text `share`, as the first token of an answer to `prompt`. The engine is
asked, as by the key `Y`; see `rlplay.trace.teachers`. `of` is `measured`, `predicted`, `batch` or `earlier`, or the
answers to the `same prompt` or to `other prompts`. `without` compares with the same update without the credit of such
answers. With `answers`, only those count that are exactly this text:

```yaml
- expect: {text: The other question raised it, share: "4", prompt: "What is 2+3?", of: other prompts, above: 0.5}
- expect: {text: It rises less, share: "4", prompt: "What is 2+3?", without: other prompts, answers: "4", below: 0}
```

`of` of a probability is `token` (the mass of every token with that text), `others` or `all`; `position` counts
completion tokens from 0; `prompt` names another than the first. Only recorded candidates are summed: for the whole
vocabulary, set `candidates` to its size.
A bound is `above`, `below` or `equals` (within 0.0001); several must all hold. After a rewind, `first`, `last`,
`highest` and `lowest` mean the live branch.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from rlplay.spelling import did_you_mean
from rlplay.trace.chosen_answers import Side
from rlplay.trace.lenses import LENSES
from rlplay.trace.metrics import METRICS, describe
from rlplay.trace.numbers import compact
from rlplay.trace.text import quote

TOLERANCE = 1e-4


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


Point = int | Literal["first", "last", "highest", "lowest"]
Undone = Literal["undone"]


class MetricValue(msgspec.Struct, frozen=True):
    """A metric at an update, alone or compared: with another update, or with another metric at this one."""

    metric: str
    at: Point = "last"
    minus: Point | Undone | None = None
    minus_metric: str | None = None
    ratio_to: Point | Undone | None = None


class TokenProbability(msgspec.Struct, frozen=True):
    """Probability mass at one position of an answer to a prompt, the first unless named, before or after the last
    update."""

    probability: str
    prompt: str = ""
    of: Literal["token", "others", "all"] = "token"
    position: int = 0
    at: Literal["before", "after"] = "after"
    minus: Literal["before"] | None = None


class LensValue(msgspec.Struct, frozen=True):
    """A statistic of the last update: of one token, over all that the policy sampled, or within answers."""

    lens: str
    completion: int = 0
    token: int = 0
    of: Literal["token", "mean", "min", "max", "range", "others"] = "token"


class SquareValue(msgspec.Struct, frozen=True):
    """The policy or the critic on a square of a world, after the last update; or the best value there is."""

    square: str
    move: str = ""
    of: Literal["probability", "value", "best"] = "probability"


class ShareValue(msgspec.Struct, frozen=True):
    """What moved the probability of the text `share`, as a token of an answer to `prompt`, in the last update; nats.

    With `without`, how far it would have moved without the credit of those answers, minus how far it moved.
    """

    share: str
    prompt: str = ""
    token: int = 0
    of: Literal["measured", "predicted", "batch", "earlier"] | Side = "batch"
    without: Side | None = None
    answers: str = ""


Quantity = MetricValue | TokenProbability | LensValue | SquareValue | ShareValue


class Expect(msgspec.Struct, frozen=True):
    """One claim: `text` says it in words."""

    text: str
    quantity: Quantity
    bounds: Bounds


_KINDS: dict[str, type[Quantity]] = {
    "metric": MetricValue,
    "probability": TokenProbability,
    "lens": LensValue,
    "square": SquareValue,
    "share": ShareValue,
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
        raise ValueError(f"expect does not know {quote(unknown[0])} here; it knows {', '.join(kind.__struct_fields__)}")
    if all(value is None for value in bounds.values()):
        raise ValueError("expect needs above, below or equals")
    if len(given := [name for name in ("minus", "minus_metric", "ratio_to") if rest.get(name) is not None]) > 1:
        raise ValueError(f"expect takes {' or '.join(given)}, not both")
    try:
        claim = Expect(" ".join(argument["text"].split()), msgspec.convert(rest, kind), msgspec.convert(bounds, Bounds))
    except msgspec.ValidationError as error:
        name = str(error).rpartition("$.")[2].rstrip("`")
        raise ValueError(f"{name} of expect takes {_takes(kind, name)}; got {quote(argument[name])}") from None
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
            raise ValueError(f"{name} of expect takes {_takes(type(quantity), name)}; got {quote(value)}")
    if bounds.above is not None and bounds.below is not None and bounds.above >= bounds.below:
        raise ValueError(f"no value is above {compact(bounds.above)} and below {compact(bounds.below)}")
    if isinstance(quantity, LensValue) and quantity.lens not in LENSES:
        raise ValueError(f"unknown lens {quote(quantity.lens)}{did_you_mean(quantity.lens, list(LENSES))}")
    if isinstance(quantity, ShareValue):
        _check_share(quantity)
    for metric in (quantity.metric, quantity.minus_metric) if isinstance(quantity, MetricValue) else ():
        if metric is not None and describe(metric) is None:
            raise ValueError(f"unknown metric {quote(metric)}{did_you_mean(metric, list(METRICS))}")


def _check_share(quantity: ShareValue) -> None:
    sides = get_args(Side)
    if not quantity.prompt:
        raise ValueError("a claim about a share needs prompt")
    if quantity.answers and quantity.without is None and quantity.of not in sides:
        raise ValueError(f"answers of expect needs of or without: {' or '.join(sides)}")
