"""What to try where the reward pays for the wrong thing: other weights of its parts, or the gold score's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rlplay.health.finding import Evidence, Finding
from rlplay.health.remedies.remedy import Remedy
from rlplay.trace.text import visible

_PART = re.compile(r"rewards/(.+)/mean")
_GOLD = re.compile(r"gold/(.+)/mean")


def weights_of(run: Evidence) -> dict[str, float]:
    """The weight of each part of the reward that counts: by the settings, else 1."""
    parts = [found[1] for name in run.history.names() if (found := _PART.fullmatch(name))]
    stated = run.settings.reward_weights
    return {name: float(weight) for name, weight in stated.items()} if stated else dict.fromkeys(parts, 1.0)


def golds(run: Evidence) -> list[str]:
    """The gold scores of the run: what is really wanted, as far as the task knows."""
    return [found[1] for name in run.history.names() if (found := _GOLD.fullmatch(name))]


def alone(run: Evidence, name: str) -> dict[str, dict[str, float]]:
    """Nothing but `name` is paid."""
    return {"reward_weights": dict.fromkeys(weights_of(run), 0.0) | {name: 1.0}}


def another_price(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    """Pay what is wanted: the gold score alone, or beside the parts; a part that has the weight 0."""
    weights = weights_of(run)
    if weights and not any(weights.values()):
        yield Remedy("every part of the reward counts", {"reward_weights": dict.fromkeys(weights, 1.0)})
    for name in golds(run):
        yield Remedy(f"pay “{visible(name)}” alone", alone(run, name))
    for name in golds(run):
        if not weights.get(name) and any(weights.values()):
            largest = max(map(abs, weights.values()))
            yield Remedy(f"pay “{visible(name)}”, too", {"reward_weights": weights | {name: 2 * largest}})
    for name, weight in weights.items():
        if not weight and name not in golds(run) and any(weights.values()):
            yield Remedy(f"pay “{visible(name)}” alone", alone(run, name))


def turned(run: Evidence, found: Finding) -> Iterator[Remedy]:
    """Turn the sign of what punishes right answers; the gold score alone."""
    weights = weights_of(run)
    named = [name for name in weights if f"“{visible(name)}”" in found.title]
    for name in named or weights:
        if weights[name]:
            turned = {"reward_weights": weights | {name: -weights[name]}}
            yield Remedy(f"turn the sign of “{visible(name)}”", turned)
    for name in golds(run):
        yield Remedy(f"pay “{visible(name)}” alone", alone(run, name))


def other_parts(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    """Each part of the reward alone, and the gold score."""
    weights = weights_of(run)
    for name in dict.fromkeys([*golds(run), *(weights if len(weights) > 1 else ())]):
        yield Remedy(f"pay “{visible(name)}” alone", alone(run, name))


def balanced_parts(run: Evidence, _found: Finding) -> Iterator[Remedy]:
    """Parts of equal spread, and each of them alone."""
    yield Remedy("each part scaled before the sum", {"multi_objective_aggregation": "normalize_then_sum"})
    yield from other_parts(run, _found)
