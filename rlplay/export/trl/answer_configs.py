"""The settings of learning from answers as fields of TRL's DPOConfig, KTOConfig, CPOConfig, SFTConfig, RewardConfig."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlplay.algorithms.pair_losses import PAIR_LOSSES, mixture
from rlplay.algorithms.setting_values import written
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.trl_verl import trainer_of
from rlplay.export.trl.fields import Field, batch_lines, config_lines, note, parts_of


def answer_fields(s: Settings, recorded: bool) -> Iterator[Field]:
    """Fields of the config, and comments; `recorded` answers keep the order in which the run learned from them."""
    pairs = s.num_prompts // s.num_minibatches
    losses = [PAIR_LOSSES[name] for name in mixture(s) if name in PAIR_LOSSES]
    alone = any(loss.alone for loss in losses)
    if alone:  # KTO's KL is estimated over what one part has
        yield from batch_lines("answers, two of each pair,", 2 * pairs, 2 * pairs, s.per_device_train_batch_size)
    elif any(loss.ranked for loss in losses):  # and these sort it
        yield from batch_lines("pairs", pairs, pairs, s.per_device_train_batch_size // 2)
    else:
        rows = s.per_device_train_batch_size // (1 if s.kind == "imitation" else 2)
        at_once = parts_of(pairs, max(1, rows) if s.per_device_train_batch_size else pairs)
        yield from batch_lines("answers or pairs", pairs, at_once, rows)
    if recorded:
        yield from config_lines({"train_sampling_strategy": "sequential"})
    elif alone:
        yield note("each update draws other pairs; KTOTrainer takes them in the order of the file")
    if s.num_iterations > 1:
        yield note(
            f"num_iterations {s.num_iterations} has no counterpart in this trainer, which learns from a batch once"
        )
    yield from config_lines(_own(s))
    if (trainer_of(s) or ("",))[0] in ("DPOTrainer", "KTOTrainer", "SFTTrainer"):
        yield from config_lines({"router_aux_loss_coef": s.router_aux_loss_coef})  # TRL's default is the model's own
    yield from _lengths(s, recorded)
    if s.loss_type == "reward":
        yield note("the scoring head starts at zero in rlplay, at random in transformers")
    if s.kind == "imitation":
        yield note("dropout is off in rlplay; here the model's config decides")


def _own(s: Settings) -> dict[str, Any]:
    """The settings that the loss reads."""
    kind, called = trainer_of(s) or ("", "")
    match kind:
        case "DPOTrainer":
            return {"loss_type": list(mixture(s)), "beta": s.beta, **_more_of_dpo(s)}
        case "CPOTrainer":
            more = {"simpo_gamma": s.simpo_gamma} if called == "simpo" else {}
            more |= {"alpha": s.alpha} if s.alpha else {}
            return {"loss_type": called, "beta": s.beta, "cpo_alpha": s.cpo_alpha, **more,
                    "label_smoothing": s.label_smoothing}  # fmt: skip
        case "KTOTrainer":
            weights = {"desirable_weight": s.desirable_weight, "undesirable_weight": s.undesirable_weight}
            return {"loss_type": called, "beta": s.beta, **weights}
        case "RewardTrainer":
            return {"center_rewards_coefficient": s.center_rewards_coefficient or None}
        case _:
            return {"completion_only_loss": True, "loss_type": called}


def _more_of_dpo(s: Settings) -> dict[str, Any]:
    """What only some of DPOTrainer's losses read, or most runs leave at its default."""
    read = {name for loss in mixture(s) if loss in PAIR_LOSSES for name in PAIR_LOSSES[loss].reads}
    found: dict[str, Any] = {"loss_weights": list(s.loss_weights.values()) or None}
    if s.f_divergence_type != "reverse_kl":
        found["f_divergence_type"] = s.f_divergence_type
    if s.f_divergence_type == "alpha_divergence":
        found["f_alpha_divergence_coef"] = s.f_alpha_divergence_coef
    found |= {"ld_alpha": s.ld_alpha, "use_weighting": s.use_weighting or None}
    if "discopop_tau" in read:
        found["discopop_tau"] = s.discopop_tau
    smoothed = "label_smoothing" in read and "sigmoid" not in mixture(s)  # which TRL does not smooth
    return found | ({"label_smoothing": s.label_smoothing} if smoothed else {})


def _lengths(s: Settings, recorded: bool) -> Iterator[Field]:
    yield "max_length=None,"
    if recorded:
        yield note("TRL adds the end token to answers that the run cut")
    else:
        longest = written(s.max_completion_length)
        yield note(f"max_completion_length {longest} cuts longer answers; TRL's max_length would also count the prompt")
