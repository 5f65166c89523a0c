"""Changes options of a TRL trainer while it trains, in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SAMPLING = ("learning_rate", "beta", "epsilon", "epsilon_high", "temperature", "reward_weights")
"""What a trainer that samples reads anew in every update."""
GIVEN = ("learning_rate", "beta")
"""The same for one that learns from given answers."""


def change(trainer: Any, name: str, value: Any) -> str:
    """Change one option of the trainer; why that cannot be done, or ""."""
    setter = _SETTERS.get(name)
    if setter is None:
        return f"TRL reads {name} only when training begins"
    if refused := setter(trainer, value):
        return refused
    if hasattr(trainer.args, name) and name != "reward_weights":
        setattr(trainer.args, name, value)
    return ""


def _learning_rate(trainer: Any, value: Any) -> str:
    """Of every group, also as the schedule's peak: it goes on from there."""
    for group in trainer.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = float(value)
    scheduler = trainer.lr_scheduler
    if hasattr(scheduler, "base_lrs"):
        scheduler.base_lrs = [float(value) for _ in scheduler.base_lrs]
    return ""


def _beta(trainer: Any, value: Any) -> str:
    if not hasattr(trainer, "beta"):
        return "this trainer has no beta"
    if not trainer.beta and value:
        return "beta was 0 when training began, so TRL has loaded no reference model"
    trainer.beta = float(value)
    return ""


def _epsilon(trainer: Any, value: Any) -> str:
    if trainer.args.epsilon_high is None:
        trainer.epsilon_high = float(value)
    trainer.epsilon_low = float(value)
    return ""


def _epsilon_high(trainer: Any, value: Any) -> str:
    trainer.epsilon_high = trainer.epsilon_low if value is None else float(value)
    return ""


def _temperature(trainer: Any, value: Any) -> str:
    if getattr(trainer, "use_vllm", False):
        return "vLLM keeps the temperature that it was started with"
    trainer.temperature = trainer.generation_config.temperature = float(value)
    return ""


def _reward_weights(trainer: Any, value: Any) -> str:
    if set(value) != set(trainer.reward_func_names):
        return f"reward_weights name the reward functions: {', '.join(trainer.reward_func_names)}"
    order = [float(value[each]) for each in trainer.reward_func_names]
    trainer.reward_weights = trainer.reward_weights.new_tensor(order)
    return ""


_SETTERS: dict[str, Callable[[Any, Any], str]] = {
    "learning_rate": _learning_rate, "beta": _beta, "epsilon": _epsilon, "epsilon_high": _epsilon_high,
    "temperature": _temperature, "reward_weights": _reward_weights,
}  # fmt: skip
"""How each option is changed; the function says why it cannot be, or ""."""
