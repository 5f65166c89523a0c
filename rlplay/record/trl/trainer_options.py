"""The options of TRL's trainers as settings of rlplay, which has their names."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rlplay.algorithms.settings import ANY_LOSS, Settings
from rlplay.record.trl.trainer_kind import KnownTrainer
from rlplay.trace.kinds import SomeSettings

_AGGREGATIONS = {
    "grpo": "seq_mean_token_mean", "sapo": "seq_mean_token_mean", "dr_grpo": "constant", "luspo": "seq_mean_token_sum",
    "bnpo": "token_mean", "dapo": "token_mean", "cispo": "token_mean", "vespo": "token_mean",
}  # fmt: skip
"""How GRPOTrainer aggregates tokens, by loss_type."""
_PRESETS = ("cispo", "sapo", "vespo")
"""The values of loss_type that are surrogates; the others are PPO's."""
_OF_TRAINERS = {
    "DPOTrainer": {"sigmoid": "dpo", "robust": "robust-dpo", "ipo": "ipo", "hinge": "hinge"},
    "KTOTrainer": {"kto": "kto"},
    "SFTTrainer": {"nll": "sft"},
    "RewardTrainer": {"None": "reward-model"},
}
"""The presets for the trainers that learn from given answers, by loss_type."""
_NEUTRAL: dict[str, dict[str, Any]] = {
    "GRPOTrainer": {"use_adaptive_entropy": False},
    "DPOTrainer": {"ld_alpha": None, "use_weighting": False, "f_divergence_type": "reverse_kl", "loss_weights": None},
    "RLOOTrainer": {"normalize_advantages": False, "reward_clip_range": None},
    "SFTTrainer": {"label_smoothing_factor": 0.0},
}
"""Options that change a loss in ways that rlplay does not have, with the values that do not."""


def settings_of(trainer: Any, known: KnownTrainer) -> SomeSettings:
    """The options of a trainer's config that rlplay has as settings; plain values only.

    Without an `algorithm` if rlplay does not have the trainer's loss; then only options that mean the same in any loss.
    """
    algorithm = _algorithm(trainer, known)
    names = Settings.__struct_fields__ if algorithm else ANY_LOSS
    named = {name: _word(getattr(trainer.args, name)) for name in names if hasattr(trainer.args, name)}
    named.pop("loss_type", None)
    if algorithm.get("algorithm") in ("dpo", "ipo", "hinge"):
        named.pop("label_smoothing", None)  # which these losses of TRL do not read
    return {**{name: value for name, value in named.items() if _plain(value)}, **_batch(trainer, known), **algorithm}


def _algorithm(trainer: Any, known: KnownTrainer) -> SomeSettings:
    """The axes of the trainer's loss; empty if it is none that rlplay has."""
    args, neutral = trainer.args, _NEUTRAL.get(known.kind, {})
    if not known.same_loss or any(getattr(args, name, value) != value for name, value in neutral.items()):
        return {}
    if getattr(trainer, "aux_loss_enabled", False):  # of a mixture of experts
        return {}
    loss = getattr(args, "loss_type", None)
    if known.kind == "RLOOTrainer":
        return {"algorithm": "rloo"}
    if known.kind == "GRPOTrainer":
        corrected = getattr(args, "use_vllm", False) and getattr(args, "vllm_importance_sampling_correction", False)
        if loss not in _AGGREGATIONS or (loss == "vespo" and corrected):  # vespo's surrogate takes the correction in
            return {}
        algorithm = loss if loss in _PRESETS else "grpo"
        return {"algorithm": algorithm, "kl_placement": "loss", "aggregation": _AGGREGATIONS[loss]}
    word = "+".join(loss) if isinstance(loss, list) else str(loss)
    algorithm = _OF_TRAINERS[known.kind].get(word)
    return {} if algorithm is None else {"algorithm": algorithm}


def _batch(trainer: Any, known: KnownTrainer) -> SomeSettings:
    """The shape of a batch, and the weights of the rewards."""
    args = trainer.args
    if known.kind in ("GRPOTrainer", "RLOOTrainer"):
        return {
            "num_prompts": max(1, args.generation_batch_size // args.num_generations),
            "num_minibatches": max(1, args.steps_per_generation // args.gradient_accumulation_steps),
            "reward_weights": dict(zip(trainer.reward_func_names, trainer.reward_weights.tolist(), strict=True)),
        }
    batch = args.per_device_train_batch_size * args.gradient_accumulation_steps * trainer.accelerator.num_processes
    return {"num_prompts": batch}


def _word(value: Any) -> Any:
    """A value as the user writes it: transformers keeps the words of some options, such as the schedule, as enums."""
    return value.value if isinstance(value, Enum) else value


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | None)
