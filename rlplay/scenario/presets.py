"""Algorithms by name: each is a combination of the axes in `settings.py`, nothing more.

Every preset sets every axis, so that a change of algorithm leaves nothing of the one before behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from rlplay.scenario.settings import Settings, check


@dataclass(frozen=True)
class Preset:
    """One named algorithm: its axes, where it was published and what it changes against its predecessor."""

    name: str
    title: str
    paper: str
    changes: str
    axes: dict[str, Any]


_ONE_STEP = {"num_iterations": 1, "num_minibatches": 1}
_REUSED = {"num_iterations": 4, "num_minibatches": 2}
_NO_KL = {"kl_placement": "none", "kl_estimator": "k3", "beta": 0.0}
_PLAIN = {
    "returns": "to_go",
    "scale_rewards": "none",
    "surrogate": "logp",
    "aggregation": "seq_mean_token_sum",
    **_NO_KL,
    **_ONE_STEP,
}
_CLIPPED = {
    "returns": "gae",
    "baseline": "value",
    "scale_rewards": "whiten",
    "surrogate": "ppo",
    "aggregation": "token_mean",
    **_REUSED,
}
_GROUP = {"returns": "broadcast", "baseline": "group_mean", "surrogate": "ppo", **_ONE_STEP}

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "reinforce", "REINFORCE", "Williams 1992, doi:10.1007/BF00992696",
            "Raises the log-probability of every token in proportion to the reward that follows it.",
            {**_PLAIN, "baseline": "none"},
        ),
        Preset(
            "reinforce-baseline", "REINFORCE with baseline", "Williams 1992, doi:10.1007/BF00992696",
            "Subtracts the batch's mean return, so that below-average answers are pushed down.",
            {**_PLAIN, "baseline": "batch_mean"},
        ),
        Preset(
            "ppo", "PPO-clip", "Schulman et al. 2017, arXiv:1707.06347",
            "Reuses each batch for several steps; once its ratio has left 1 ± ε in the direction that the advantage "
            "pushes, a token stops pulling.",
            {**_CLIPPED, **_NO_KL},
        ),
        Preset(
            "rlhf-ppo", "PPO for RLHF", "Ziegler et al. 2019, arXiv:1909.08593",
            "PPO-clip, with the KL to the reference subtracted from each token's reward.",
            {**_CLIPPED, "kl_placement": "reward", "kl_estimator": "k1", "beta": 0.05},
        ),
        Preset(
            "grpo", "GRPO", "Shao et al. 2024, arXiv:2402.03300",
            "Needs no value head: completions of one prompt are compared with each other.",
            {**_GROUP, "scale_rewards": "group", "kl_placement": "loss", "kl_estimator": "k3", "beta": 0.0,
             "aggregation": "seq_mean_token_mean"},
        ),
        Preset(
            "dr-grpo", "Dr. GRPO", "Liu et al. 2025, arXiv:2503.20783",
            "GRPO without its two biases: no division by the group's spread, none by the completion's length.",
            {**_GROUP, **_NO_KL, "scale_rewards": "none", "aggregation": "constant"},
        ),
    )
}  # fmt: skip


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
