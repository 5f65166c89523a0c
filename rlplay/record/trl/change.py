"""Changes options of a TRL trainer while it trains, in every process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlplay.record.trl import compat

SAMPLING = ("learning_rate", "beta", "epsilon", "epsilon_high", "reward_weights")
"""What a trainer that samples reads anew in every update. Not the temperature: the model's head keeps the first one."""
GIVEN = ("learning_rate", "beta")
"""The same for one that learns from given answers."""
ANY = ("learning_rate",)
"""The same for one whose loss rlplay does not have: its beta may be something else."""


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
    """Of every group, as the peak of the schedule, which stays where it is."""
    peaks = getattr(trainer.lr_scheduler, "base_lrs", None)
    for number, group in enumerate(trainer.optimizer.param_groups):
        share = group["lr"] / peaks[number] if peaks and peaks[number] else 1.0
        group["lr"], group["initial_lr"] = value * share, value
    if peaks is not None:
        trainer.lr_scheduler.base_lrs = [value for _ in peaks]
        compat.log_rates(trainer.lr_scheduler, [group["lr"] for group in trainer.optimizer.param_groups])
    return ""


def _beta(trainer: Any, value: Any) -> str:
    if not hasattr(trainer, "beta"):
        return "this trainer has no beta"
    if value and not trainer.beta and not _has_reference(trainer):
        return "beta was 0 when training began, so TRL has loaded no reference model"
    trainer.beta = float(value)
    return ""


def _has_reference(trainer: Any) -> bool:
    """TRL's reference is a model, or the model without its adapters."""
    adapted = hasattr(trainer.accelerator.unwrap_model(trainer.model), "disable_adapter")
    return adapted or getattr(trainer, "ref_model", None) is not None


def _epsilon(trainer: Any, value: Any) -> str:
    if trainer.args.epsilon_high is None:
        trainer.epsilon_high = float(value)
    trainer.epsilon_low = float(value)
    return ""


def _epsilon_high(trainer: Any, value: Any) -> str:
    trainer.epsilon_high = trainer.epsilon_low if value is None else float(value)
    return ""


def _reward_weights(trainer: Any, value: Any) -> str:
    if set(value) != set(trainer.reward_func_names):
        return f"reward_weights name the reward functions: {', '.join(trainer.reward_func_names)}"
    order = [float(value[each]) for each in trainer.reward_func_names]
    trainer.reward_weights = trainer.reward_weights.new_tensor(order)
    return ""


_SETTERS: dict[str, Callable[[Any, Any], str]] = {
    "learning_rate": _learning_rate, "beta": _beta, "epsilon": _epsilon, "epsilon_high": _epsilon_high,
    "reward_weights": _reward_weights,
}  # fmt: skip
"""How each option is changed; the function says why it cannot be, or ""."""
