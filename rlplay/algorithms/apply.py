"""Combines settings: applies presets and makes several changes at once."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.algorithms.named import preset
from rlplay.algorithms.rules import rules
from rlplay.algorithms.setting_values import check
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.surrogates import OWN_SURROGATE, SURROGATES
from rlplay.trace.kinds import SomeSettings


def apply(settings: Settings, name: str, value: Any) -> Settings:
    """`settings` with one setting changed; `algorithm` changes all the axes of its preset.

    Setting or leaving TRPO's surrogate also sets or removes its constraint, since neither can be set first.

    Raises ValueError, one line, if the name or value is not allowed.
    """
    value = check(name, value)
    if name == "surrogate" and SURROGATES.get(value, OWN_SURROGATE).trust_region:
        return msgspec.structs.replace(settings, surrogate=value, kl_placement="constraint", kl_anchor="old")
    if name == "surrogate" and settings.kl_placement == "constraint":
        return msgspec.structs.replace(settings, surrogate=value, kl_placement="none")
    if name != "algorithm":
        return msgspec.structs.replace(settings, **{name: value})
    axes = {setting: check(setting, word) for setting, word in preset(value).axes.items()}
    return msgspec.structs.replace(settings, algorithm=value, **axes)


def resolve(chosen: SomeSettings) -> Settings:
    """The settings of a scenario's mapping: the defaults, then the algorithm's axes, then the `chosen` values.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    return apply_all(Settings(), {"algorithm": "grpo", **chosen})


def apply_all(settings: Settings, changes: SomeSettings) -> Settings:
    """`settings` with all `changes` at once, those that change other settings first; only the result has to fit.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    for name, value in _leaders_first(changes):
        settings = apply(settings, name, value)
    return validated(settings)


def in_order(settings: Settings, changes: SomeSettings) -> list[tuple[str, Any]]:
    """`changes` one by one, in an order in which every step is allowed, with a detour if necessary.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    goal = apply_all(settings, changes)
    left = {name: getattr(goal, name) for name, _ in _leaders_first(changes)}
    steps: list[tuple[str, Any]] = []
    while left:
        fitting = (item for item in left.items() if _fits(settings, *item))
        # GAE and a value baseline need each other; only via to_go can one be set before the other.
        detour = ("returns", "to_go")
        name, value = next(fitting, next(iter(left.items())) if detour in steps else detour)
        settings = apply(settings, name, value)
        steps.append((name, value))
        if getattr(goal, name) == value:
            left.pop(name, None)
        else:
            left[name] = getattr(goal, name)
    return steps


def _leaders_first(changes: SomeSettings) -> list[tuple[str, Any]]:
    """The algorithm, then the surrogate, then the rest: a setting that changes others must not undo their changes."""
    return sorted(changes.items(), key=lambda change: (change[0] != "algorithm", change[0] != "surrogate"))


def _fits(settings: Settings, name: str, value: Any) -> bool:
    try:
        validated(apply(settings, name, value))
    except ValueError:
        return False
    return True


def validated(settings: Settings) -> Settings:
    """`settings` if its axes fit together; else raises ValueError with the reason."""
    for fits, reason in rules(settings):
        if not fits:
            raise ValueError(reason)
    return settings
