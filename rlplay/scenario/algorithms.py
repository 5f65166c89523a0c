"""Algorithms by name: each is a combination of the axes in `settings.py`, nothing more.

Every preset sets every axis, so that a change of algorithm leaves nothing of the one before behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
