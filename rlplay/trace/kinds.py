"""What kind of update it is: whether it learns from rewards, from pairs of answers, or from answers to imitate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["rewards", "learned rewards", "pairs", "imitation", "reward model"]
"""Rewards by rule; rewards that a reward model gives; a preference loss; fine-tuning; a reward model that is trained.

Only the first two have rewards and advantages. The others have labels: which answer is chosen and which is rejected.
"""

REWARDED: tuple[Kind, ...] = ("rewards", "learned rewards")


def kind_of(settings: Mapping[str, Any]) -> Kind:
    """The kind of update that these settings make; rewards by rule where they are not known."""
    loss_type = settings.get("loss_type", "policy_gradient")
    if loss_type == "policy_gradient":
        return "learned rewards" if (settings.get("reward_weights") or {}).get("reward_model") else "rewards"
    if loss_type == "sft":
        return "imitation"
    return "reward model" if loss_type == "reward" else "pairs"
