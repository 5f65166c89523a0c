"""Settings put together: presets applied, several changes at once, and whether the axes fit each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rlplay.scenario.algorithms import PRESETS
from rlplay.scenario.settings import Settings, check


def apply(settings: Settings, name: str, value: Any) -> Settings:
    """`settings` with one setting changed; `algorithm` changes all the axes of its preset.

    Raises ValueError, one line, if the name or value is not allowed.
    """
    value = check(name, value)
    if name != "algorithm":
        return msgspec.structs.replace(settings, **{name: value})
    if value not in PRESETS:
        raise ValueError(f"unknown algorithm {value!r}; known: {', '.join(PRESETS)}")
    return msgspec.structs.replace(settings, algorithm=value, **PRESETS[value].axes)


def resolve(given: dict[str, Any]) -> Settings:
    """Settings from a scenario's mapping: the defaults, then the algorithm's axes, then what was `given`.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    return apply_all(Settings(), {"algorithm": "grpo", **given})


def apply_all(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """`settings` with all `changes` at once, the algorithm first; only the end has to fit together.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    for name, value in _algorithm_first(changes):
        settings = apply(settings, name, value)
    return validated(settings)


def in_order(settings: Settings, changes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """`changes` one by one, in an order in which every step on the way is allowed, with a detour where it takes one.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    goal = apply_all(settings, changes)
    left = {name: getattr(goal, name) for name, _ in _algorithm_first(changes)}
    steps: list[tuple[str, Any]] = []
    while left:
        fitting = (item for item in left.items() if _fits(settings, *item))
        # GAE and a value baseline need each other; only by way of to_go can one be set before the other.
        detour = ("returns", "to_go")
        name, value = next(fitting, next(iter(left.items())) if detour in steps else detour)
        settings = apply(settings, name, value)
        steps.append((name, value))
        if getattr(goal, name) == value:
            left.pop(name, None)
        else:
            left[name] = getattr(goal, name)
    return steps


def _algorithm_first(changes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(changes.items(), key=lambda change: change[0] != "algorithm")


def _fits(settings: Settings, name: str, value: Any) -> bool:
    try:
        validated(apply(settings, name, value))
    except ValueError:
        return False
    return True


def validated(settings: Settings) -> Settings:
    """`settings`, if its axes fit together; ValueError with the reason if not."""
    if settings.returns == "gae" and settings.baseline != "value":
        raise ValueError("returns=gae needs baseline=value: GAE bootstraps from the value head")
    if settings.baseline == "value" and settings.returns == "broadcast":
        raise ValueError("baseline=value needs returns=gae or to_go: a value is the expectation from one token on")
    if settings.baseline == "group_mean" and settings.num_generations < 2:
        raise ValueError("baseline=group_mean needs num_generations of 2 or more: one completion has no siblings")
    if settings.scale_rewards == "group" and settings.num_generations < 2:
        raise ValueError("scale_rewards=group needs num_generations of 2 or more: one completion has no spread")
    if settings.num_minibatches > settings.num_prompts * settings.num_generations:
        raise ValueError(
            f"num_minibatches={settings.num_minibatches} is more than the "
            f"{settings.num_prompts * settings.num_generations} completions of an update"
        )
    return settings
