"""What TRL and verl call a combination of settings."""

from __future__ import annotations

from rlplay.algorithms.catalogue import PRESETS
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES, mixture
from rlplay.algorithms.settings import Settings, row
from rlplay.algorithms.value_losses import VALUE_LOSSES

EXPERIMENTAL = {"CPOTrainer": "trl.experimental.cpo", "GMPOTrainer": "trl.experimental.gmpo"}
"""The modules of trainers that TRL does not export itself."""

_GMPO_AXES = {"surrogate": "ratio", "importance_sampling_level": "geometric", "aggregation": "seq_mean_token_mean"}
"""The axes of GMPOTrainer's loss; apart from these it is a GRPOTrainer."""

_RLOO_OPTIONS = {
    "beta", "epsilon", "epsilon_high", "num_iterations", "num_minibatches", "mask_truncated_completions",
    "scale_rewards", "importance_sampling_mode", "importance_sampling_clip_max", "importance_sampling_clip_min",
    "rollout_rs", "old_logprobs_of", "sync_ref_model",
}  # fmt: skip
"""The settings that RLOOTrainer takes, or that do not change its loss; all others are fixed at the preset's values."""
_RLOO_SCALES = ("none", "answers")


def trainer(settings: Settings) -> str | None:
    """The trainer of TRL with this loss, and its `loss_type` where it has several; None if there is none."""
    found = trainer_of(settings)
    return found and " with loss_type=".join(filter(None, found))


def trainer_of(settings: Settings) -> tuple[str, str] | None:
    """The same as class and `loss_type`; the latter is empty if the class has only one loss.

    TRL's DPO has no label smoothing, and its ORPO imitates the prompts too.
    """
    if settings.distils or settings.loss_type in VALUE_LOSSES:
        return None
    if settings.loss_type == "policy_gradient":
        if fused := loss_type(settings):
            return "GRPOTrainer", fused
        if all(getattr(settings, name) == value for name, value in _GMPO_AXES.items()):
            return "GMPOTrainer", ""
        return ("RLOOTrainer", "") if _is_rloo(settings) else None
    smoothed = "sigmoid" in mixture(settings) and settings.label_smoothing > 0
    found = IMITATIONS[settings.loss_type] if settings.kind == "imitation" else PAIR_LOSSES[settings.loss_type]
    trainer, _, loss = found.trl.partition(" ")
    if settings.loss_weights and settings.kind == "pairs":
        loss = "+".join(settings.loss_weights)
    return (trainer, loss) if trainer and not smoothed else None


def _is_rloo(settings: Settings) -> bool:
    axes = PRESETS["rloo"].axes
    return settings.scale_rewards in _RLOO_SCALES and all(
        getattr(settings, name) == axes[name] for name in axes.keys() - _RLOO_OPTIONS
    )


def loss_type(settings: Settings) -> str | None:
    """The `loss_type` of TRL's GRPOTrainer that fuses this surrogate and aggregation; None if there is none.

    TRL's `bnpo` averages over the tokens of one optimizer step, `dapo` over those of the whole batch; the two agree if
    a batch is one step. TRL has no value loss and only two of the ratio's levels.
    """
    if settings.baseline == "value" or not settings.level_row.trl:
        return None
    loss = settings.surrogate_row.fused.get(settings.aggregation)
    return "bnpo" if loss == "dapo" and settings.num_minibatches > 1 else loss


def verl(settings: Settings) -> str | None:
    """The settings of verl with this policy loss, as verl writes them; None if it has no such loss, or for pairs."""
    if settings.loss_type != "policy_gradient" or settings.distils:
        return None
    level, surrogate = settings.level_row, settings.surrogate_row
    if settings.clip_cov_ratio or settings.kl_cov_ratio < 1:
        return f"loss_mode={'clip' if settings.clip_cov_ratio else 'kl'}_cov, loss_agg_mode={_aggregation(settings)}"
    mode = level.verl if surrogate.verl_names_level and level.verl else surrogate.verl
    if not mode or (not level.verl and settings.importance_sampling_level != "token"):
        return None
    return f"loss_mode={mode}, loss_agg_mode={_aggregation(settings)}"


def _aggregation(settings: Settings) -> str:
    return str(row(settings, "aggregation").verl)
