"""verl's configuration as settings of rlplay, which has TRL's names."""

from __future__ import annotations

from typing import Any

from rlplay.trace.kinds import SomeSettings

_AGGREGATIONS = {
    "token-mean": "token_mean", "seq-mean-token-sum": "seq_mean_token_sum",
    "seq-mean-token-mean": "seq_mean_token_mean",
}  # fmt: skip
"""How `agg_loss` aggregates tokens, by loss_agg_mode."""
_ESTIMATORS = {"kl": "k1", "k1": "k1", "mse": "k2", "k2": "k2", "low_var_kl": "k3", "k3": "k3"}
"""The estimators of `kl_penalty`, by kl_loss_type."""
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


def settings_of(config: Any) -> SomeSettings:
    """The options that rlplay has as settings; plain values only.

    Without an `algorithm` unless the loss is one that rlplay has for certain: GRPO's advantages with PPO's clipping,
    which verl calls "vanilla", and without a correction, a bonus or a teacher.
    """
    found = {name: option(config, path) for name, path in _SAME.items()}
    batch, part = found["num_prompts"], option(config, "actor_rollout_ref.actor.ppo_mini_batch_size")
    if batch and part:
        found["num_minibatches"] = max(1, batch // part)
    top_k = option(config, "actor_rollout_ref.rollout.top_k")
    found["top_k"] = None if top_k is None else max(0, top_k)
    plain = {name: value for name, value in found.items() if isinstance(value, bool | int | float | str)}
    return plain | _loss(config)


def _loss(config: Any) -> SomeSettings:
    actor = "actor_rollout_ref.actor."
    aggregation = _AGGREGATIONS.get(option(config, actor + "loss_agg_mode", "token-mean"))
    estimator = _ESTIMATORS.get(option(config, actor + "kl_loss_type", "low_var_kl"))
    beta = option(config, actor + "kl_loss_coef", 0.0) if option(config, actor + "use_kl_loss") else 0.0
    correction = "algorithm.rollout_correction."
    certain = (
        option(config, "algorithm.adv_estimator") == "grpo"
        and option(config, actor + "policy_loss.loss_mode", "vanilla") == "vanilla"
        and aggregation is not None
        and not option(config, actor + "entropy_coeff", 0)
        and not option(config, "algorithm.use_kl_in_reward")
        and not option(config, "distillation.enabled")
        and not any(option(config, correction + name) for name in ("bypass_mode", "rollout_is", "rollout_rs"))
        and (not beta or estimator is not None)
    )
    if not certain:
        return {}
    clip = option(config, actor + "clip_ratio", 0.2)
    return {
        "algorithm": "grpo",
        "scale_rewards": "group" if option(config, "algorithm.norm_adv_by_std_in_grpo", True) else "none",
        "epsilon": option(config, actor + "clip_ratio_low", clip),
        "epsilon_high": option(config, actor + "clip_ratio_high", clip),
        "delta": option(config, actor + "clip_ratio_c", 3.0),
        "aggregation": aggregation,
        "kl_placement": "loss",
        "beta": beta,
        "kl_estimator": estimator or "k3",
        "use_bias_correction_kl": False,
    }


def option(config: Any, path: str, default: Any = None) -> Any:
    """What a configuration has at a path, such as "data.train_batch_size"; `default` where it has nothing."""
    for name in path.split("."):
        try:
            config = config.get(name)
        except (AttributeError, KeyError):
            return default
        if config is None:
            return default
    return config
