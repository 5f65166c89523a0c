"""Changes options of a TRL trainer while it trains, in every process."""

from __future__ import annotations

from typing import Any

CHANGEABLE = ("learning_rate", "beta", "epsilon", "epsilon_high", "temperature", "reward_weights")
"""What a trainer that samples reads anew in every update."""


def change(trainer: Any, name: str, value: Any) -> str:
    """Change one option of the trainer; why that cannot be done, or ""."""
    match name:
        case "learning_rate":
            _learning_rate(trainer, float(value))
        case "beta" if not trainer.beta and value:
            return "beta was 0 when training began, so TRL has loaded no reference model"
        case "beta":
            trainer.beta = float(value)
        case "epsilon":
            if trainer.args.epsilon_high is None:
                trainer.epsilon_high = float(value)
            trainer.epsilon_low = float(value)
        case "epsilon_high":
            trainer.epsilon_high = trainer.epsilon_low if value is None else float(value)
        case "temperature" if getattr(trainer, "use_vllm", False):
            return "vLLM keeps the temperature that it was started with"
        case "temperature":
            trainer.temperature = float(value)
            trainer.generation_config.temperature = float(value)
        case "reward_weights":
            if set(value) != set(trainer.reward_func_names):
                return f"reward_weights name the reward functions: {', '.join(trainer.reward_func_names)}"
            order = [float(value[each]) for each in trainer.reward_func_names]
            trainer.reward_weights = trainer.reward_weights.new_tensor(order)
        case _:
            return f"TRL reads {name} only when training begins"
    if hasattr(trainer.args, name) and name != "reward_weights":
        setattr(trainer.args, name, value)
    return ""


def _learning_rate(trainer: Any, value: float) -> None:
    """Of every group, also as the schedule's peak: it goes on from there."""
    for group in trainer.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = value
    scheduler = trainer.lr_scheduler
    if hasattr(scheduler, "base_lrs"):
        scheduler.base_lrs = [value for _ in scheduler.base_lrs]
