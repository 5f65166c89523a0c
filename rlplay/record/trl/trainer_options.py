"""The options of TRL's trainers as settings of rlplay, which has their names."""

from __future__ import annotations

from enum import Enum
from typing import Any

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES, PairLoss
from rlplay.algorithms.setting_values import fitting
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
_ALONE = {"RewardTrainer": "None"}
"""What stands for the loss_type of a trainer that has none."""
_NEUTRAL: dict[str, dict[str, Any]] = {"SFTTrainer": {"label_smoothing_factor": 0.0}}
"""Options that change a loss in ways that rlplay does not have, with the values that do not."""


def settings_of(trainer: Any, known: KnownTrainer) -> SomeSettings:
    """The options of a trainer's config that rlplay has as settings; plain values only.

    Without an `algorithm` if rlplay does not have the trainer's loss; then only options that mean the same in any loss.
    """
    algorithm = _algorithm(trainer, known)
    names = Settings.__struct_fields__ if algorithm else ANY_LOSS
    named = {name: _word(getattr(trainer.args, name)) for name in names if hasattr(trainer.args, name)}
    for name in ("loss_type", "loss_weights"):  # TRL's lists of them are in the algorithm
        named.pop(name, None)
    if not any("label_smoothing" in loss.reads for loss in _smoothed(trainer.args)):
        named.pop("label_smoothing", None)
    # TRL has None for an option that is off, such as min_p, where rlplay has a number.
    plain = fitting({name: value for name, value in named.items() if _plain(value)})
    return {**plain, **_batch(trainer, known), **algorithm}


def _algorithm(trainer: Any, known: KnownTrainer) -> SomeSettings:
    """The axes of the trainer's loss; empty if it is none that rlplay has."""
    args, neutral = trainer.args, _NEUTRAL.get(known.kind, {})
    if not known.same_loss or any(getattr(args, name, value) != value for name, value in neutral.items()):
        return {}
    if getattr(trainer, "aux_loss_enabled", False):  # of a mixture of experts
        return {}
    loss = getattr(args, "loss_type", None)
    if known.kind == "RLOOTrainer":
        return {"algorithm": "rloo"} | _clipped(args)
    if known.kind == "GRPOTrainer":
        if loss not in _AGGREGATIONS:
            return {}
        algorithm = loss if loss in _PRESETS else "grpo"
        axes = {"algorithm": algorithm, "kl_placement": "loss", "aggregation": _AGGREGATIONS[loss]}
        return axes | _corrected(args)
    return _of_pairs(trainer, loss) if isinstance(loss, list) else _named(known.kind, str(loss))


def _clipped(args: Any) -> SomeSettings:
    """What RLOOTrainer makes of rewards and advantages."""
    low, high = getattr(args, "reward_clip_range", None) or (None, None)
    scaled = {"scale_rewards": "answers"} if getattr(args, "normalize_advantages", False) else {}
    return {"reward_clip_min": low, "reward_clip_max": high, **scaled}


def _corrected(args: Any) -> SomeSettings:
    """How GRPOTrainer corrects for vLLM, and what that reports where TRL itself has set it up."""
    if not getattr(args, "use_vllm", False):
        return {}
    found: SomeSettings = {"logprobs_mode": "processed_logprobs"} if args.vllm_mode == "colocate" else {}
    if getattr(args, "vllm_importance_sampling_correction", False):
        names = ("mode", "clip_max", "clip_min")
        found |= {f"importance_sampling_{name}": getattr(args, f"vllm_importance_sampling_{name}") for name in names}
    return found


def _named(kind: str, loss: str) -> SomeSettings:
    """The preset of a trainer's only loss; empty if there is none."""
    algorithm = _presets(kind).get(loss)
    return {} if algorithm is None else {"algorithm": algorithm}


def _presets(kind: str) -> dict[str, str]:
    """The first preset of each loss of a trainer that learns from given answers, by TRL's loss_type."""
    found: dict[str, str] = {}
    for preset in PRESETS.values():
        word = preset.axes["loss_type"]
        row = PAIR_LOSSES.get(word) or IMITATIONS.get(word)
        trainer, _, loss = ("" if row is None else row.trl).partition(" ")
        if trainer == kind:
            found.setdefault(loss or _ALONE[kind], preset.name)
    return found


def _smoothed(args: Any) -> list[PairLoss]:
    """The losses on pairs of which some read label_smoothing in TRL, too: its sigmoid does not."""
    losses = getattr(args, "loss_type", None)
    every = losses if isinstance(losses, list) else []
    return [PAIR_LOSSES[each] for each in every if each in PAIR_LOSSES and each != "sigmoid"]


def _of_pairs(trainer: Any, losses: list[str]) -> SomeSettings:
    """The axes of DPOTrainer's one loss, or of several with their weights; empty if rlplay has no such sum."""
    args, presets = trainer.args, _presets("DPOTrainer")
    pairs = [each for each in losses if each != "sft"]
    if not pairs or len({*losses}) < len(losses) or not presets.keys() >= {*pairs}:
        return {}
    smoothed = [each for each in _smoothed(args) if "label_smoothing" in each.reads]
    if "sigmoid" in pairs and smoothed and args.label_smoothing:  # rlplay's sigmoid would read it
        return {}
    parts = args.gradient_accumulation_steps > 1 or trainer.accelerator.num_processes > 1
    if parts and any(PAIR_LOSSES[each].ranked for each in pairs):  # it sorts each part by itself
        return {}
    weights = dict(zip(losses, args.loss_weights or [1.0] * len(losses), strict=True))
    if weights == {pairs[0]: 1.0}:
        return {"algorithm": presets[pairs[0]]}
    return {"algorithm": "mpo", "loss_type": pairs[0], "loss_weights": weights}


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
