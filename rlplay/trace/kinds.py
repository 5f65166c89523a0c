"""Settings as far as records need to know of them: by name, and the kind of update that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

SomeSettings = dict[str, Any]
"""Some settings by name: those that a change, an algorithm, a scenario or another trainer names."""
Kind = Literal["rewards", "learned rewards", "action values", "pairs", "imitation", "reward model"]
"""In order: rewards by rule, rewards by a reward model, Q-learning or SARSA, a preference loss, fine-tuning, training a
reward model.

Only the first three have rewards and advantages. The others have labels: which answer is chosen and which is rejected.
"""

REWARDED: tuple[Kind, ...] = ("rewards", "learned rewards", "action values")


def kind_of(settings: Mapping[str, Any]) -> Kind:
    """The kind of update under these settings; rewards by rule if they are unknown."""
    loss_type = settings.get("loss_type", "policy_gradient")
    if loss_type == "policy_gradient":
        return "learned rewards" if (settings.get("reward_weights") or {}).get("reward_model") else "rewards"
    if loss_type in ("q_learning", "sarsa"):
        return "action values"
    if loss_type == "sft":
        return "imitation"
    return "reward model" if loss_type == "reward" else "pairs"
