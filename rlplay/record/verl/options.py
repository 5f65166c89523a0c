"""verl's configuration as settings of rlplay, which has TRL's names."""

from __future__ import annotations

from typing import Any

from rlplay.record.verl.losses import loss_of
from rlplay.record.verl.option import option
from rlplay.trace.kinds import SomeSettings

_SAME = {
    "num_prompts": "data.train_batch_size",
    "num_generations": "actor_rollout_ref.rollout.n",
    "max_completion_length": "data.max_response_length",
    "temperature": "actor_rollout_ref.rollout.temperature",
    "top_p": "actor_rollout_ref.rollout.top_p",
    "num_iterations": "actor_rollout_ref.actor.ppo_epochs",
    "learning_rate": "actor_rollout_ref.actor.optim.lr",
    "weight_decay": "actor_rollout_ref.actor.optim.weight_decay",
    "max_grad_norm": "actor_rollout_ref.actor.grad_clip",
    "dynamic_sampling": "algorithm.filter_groups.enable",
}
"""Options that mean the same whatever the loss is."""


def settings_of(config: Any, older: bool = False) -> SomeSettings:
    """The options that rlplay has as settings; plain values only.

    Without an `algorithm` unless the loss is one that rlplay has for certain. `older` as in `loss_of`.
    """
    found = {name: option(config, path) for name, path in _SAME.items()}
    batch, part = found["num_prompts"], option(config, "actor_rollout_ref.actor.ppo_mini_batch_size")
    if batch and part:
        found["num_minibatches"] = max(1, batch // part)
    top_k = option(config, "actor_rollout_ref.rollout.top_k")
    found["top_k"] = None if top_k is None else max(0, top_k)
    plain = {name: value for name, value in found.items() if isinstance(value, bool | int | float | str)}
    return plain | loss_of(config, older)
