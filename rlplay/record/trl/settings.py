"""The options of TRL's trainers as settings of rlplay, which has their names."""

from __future__ import annotations

from typing import Any

from rlplay.algorithms.settings import Settings

_AGGREGATIONS = {
    "grpo": "seq_mean_token_mean", "sapo": "seq_mean_token_mean", "dr_grpo": "constant", "luspo": "seq_mean_token_sum",
}  # fmt: skip
"""How GRPOTrainer aggregates tokens, by loss_type; the others divide by the number of tokens."""
_PRESETS = ("cispo", "sapo", "vespo")
"""The values of loss_type that are surrogates; the others are PPO's."""


def settings_of(trainer: Any) -> dict[str, Any]:
    """All options of the trainer's config that rlplay has as settings, plain values only."""
    args = trainer.args
    named = {name: getattr(args, name) for name in Settings.__struct_fields__ if hasattr(args, name)}
    loss = named.pop("loss_type", None)
    own: dict[str, Any] = {
        "num_prompts": max(1, args.generation_batch_size // args.num_generations),
        "num_minibatches": max(1, args.steps_per_generation // args.gradient_accumulation_steps),
        "reward_weights": dict(zip(trainer.reward_func_names, trainer.reward_weights.tolist(), strict=True)),
    }
    if loss is None:
        own |= {"algorithm": "rloo"}
    else:
        own |= {"algorithm": loss if loss in _PRESETS else "grpo"}
        own |= {"kl_placement": "loss", "aggregation": _AGGREGATIONS.get(loss, "token_mean")}
    return {**{name: value for name, value in named.items() if _plain(value)}, **own}


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None)
