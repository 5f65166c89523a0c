"""Algorithms by name: each is a combination of the axes in `settings.py`, nothing more."""

from __future__ import annotations

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


_GROUP = {"returns": "broadcast", "baseline": "group_mean", "surrogate": "ppo"}

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "reinforce", "REINFORCE", "Williams 1992, doi:10.1007/BF00992696",
            "Raises the log-probability of every token in proportion to the reward that follows it.",
            {"returns": "to_go", "baseline": "none", "scale_rewards": "none", "surrogate": "logp",
             "kl_placement": "none", "aggregation": "seq_mean_token_sum"},
        ),
        Preset(
            "reinforce-baseline", "REINFORCE with baseline", "Williams 1992, doi:10.1007/BF00992696",
            "Subtracts the batch's mean return, so that below-average answers are pushed down.",
            {"returns": "to_go", "baseline": "batch_mean", "scale_rewards": "none", "surrogate": "logp",
             "kl_placement": "none", "aggregation": "seq_mean_token_sum"},
        ),
        Preset(
            "ppo", "PPO-clip", "Schulman et al. 2017, arXiv:1707.06347",
            "Reuses each batch for several steps; a token whose ratio has moved past 1 ± ε stops pulling.",
            {"returns": "gae", "baseline": "value", "scale_rewards": "whiten", "surrogate": "ppo",
             "kl_placement": "none", "aggregation": "token_mean", "num_iterations": 4, "num_minibatches": 2},
        ),
        Preset(
            "rlhf-ppo", "PPO for RLHF", "Ziegler et al. 2019, arXiv:1909.08593",
            "PPO-clip, with the KL to the reference subtracted from each token's reward.",
            {"returns": "gae", "baseline": "value", "scale_rewards": "whiten", "surrogate": "ppo",
             "kl_placement": "reward", "kl_estimator": "k1", "aggregation": "token_mean",
             "num_iterations": 4, "num_minibatches": 2},
        ),
        Preset(
            "grpo", "GRPO", "Shao et al. 2024, arXiv:2402.03300",
            "Needs no value head: completions of one prompt are compared with each other.",
            {**_GROUP, "scale_rewards": "group", "kl_placement": "loss", "kl_estimator": "k3",
             "aggregation": "seq_mean_token_mean"},
        ),
        Preset(
            "dr-grpo", "Dr. GRPO", "Liu et al. 2025, arXiv:2503.20783",
            "GRPO without its two biases: no division by the group's spread, none by the completion's length.",
            {**_GROUP, "scale_rewards": "none", "kl_placement": "none", "aggregation": "constant"},
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
    settings = apply(Settings(), "algorithm", given.get("algorithm", "grpo"))
    for name, value in given.items():
        if name != "algorithm":
            settings = apply(settings, name, value)
    return validated(settings)


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
