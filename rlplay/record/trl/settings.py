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


_OF_TRAINERS = {
    "DPOTrainer": {"sigmoid": "dpo", "robust": "robust-dpo", "ipo": "ipo", "hinge": "hinge"},
    "KTOTrainer": {"kto": "kto"},
    "SFTTrainer": {"nll": "sft"},
    "RewardTrainer": {"None": "reward-model"},
}
"""The presets for the trainers that learn from given answers, by loss_type."""


def settings_of(trainer: Any, kind: str) -> dict[str, Any]:
    """All options of the config of a trainer, a `kind` of TRL, that rlplay has as settings; plain values only.

    Raises ValueError, one line, if rlplay does not have the trainer's loss.
    """
    args = trainer.args
    named = {name: getattr(args, name) for name in Settings.__struct_fields__ if hasattr(args, name)}
    loss = named.pop("loss_type", None)
    own = _online(trainer, loss) if kind in ("GRPOTrainer", "RLOOTrainer") else _offline(trainer, kind, loss)
    return {**{name: value for name, value in named.items() if _plain(value)}, **own}


def _online(trainer: Any, loss: str | None) -> dict[str, Any]:
    args = trainer.args
    own: dict[str, Any] = {
        "num_prompts": max(1, args.generation_batch_size // args.num_generations),
        "num_minibatches": max(1, args.steps_per_generation // args.gradient_accumulation_steps),
        "reward_weights": dict(zip(trainer.reward_func_names, trainer.reward_weights.tolist(), strict=True)),
    }
    if loss is None:
        return own | {"algorithm": "rloo"}
    aggregation = _AGGREGATIONS.get(loss, "token_mean")
    return own | {
        "algorithm": loss if loss in _PRESETS else "grpo", "kl_placement": "loss", "aggregation": aggregation
    }  # fmt: skip


def _offline(trainer: Any, kind: str, loss: Any) -> dict[str, Any]:
    args, presets = trainer.args, _OF_TRAINERS[kind]
    word = "+".join(loss) if isinstance(loss, list) else str(loss)
    if word not in presets:
        raise ValueError(
            f"RlplayCallback cannot record this {kind}: loss_type={word} is none that rlplay has: {', '.join(presets)}"
        )
    algorithm = presets[word]
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * trainer.accelerator.num_processes
    return {"algorithm": algorithm, "num_prompts": batch}


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None)
