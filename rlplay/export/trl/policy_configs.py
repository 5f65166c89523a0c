"""The settings of a policy gradient as fields of TRL's GRPOConfig or RLOOConfig."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlplay.algorithms.setting_values import written
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.trl_verl import loss_type, trainer_of
from rlplay.export.trl.fields import Field, batch_lines, config_lines, literal, note, parts_of

_SAMPLER = ("sampler_dtype", "sampler_lag", "weight_sync_steps", "max_staleness", "logprobs_mode", "old_logprobs_of")
"""Settings of a sampler apart from the trainer."""


def policy_fields(s: Settings, weights: list[float]) -> Iterator[Field]:
    """Fields of the config, and comments; `weights` belong to the reward functions in the script's order."""
    yield from _sampling(s)
    yield from config_lines({"reward_weights": weights or None})
    yield from _left_out(s)
    kind, _ = trainer_of(s) or ("", "")
    yield from _rloo(s) if kind == "RLOOTrainer" else _grpo(s, kind)


def _sampling(s: Settings) -> Iterator[Field]:
    yield from config_lines({"num_generations": s.num_generations, "max_completion_length": s.max_completion_length,
                      "temperature": s.temperature})  # fmt: skip
    yield from config_lines({"top_k": s.top_k, "top_p": s.top_p, "min_p": s.min_p or None,
                      "repetition_penalty": None if s.repetition_penalty == 1 else s.repetition_penalty})  # fmt: skip
    rounds = s.max_tool_calling_iterations
    if rounds is not None and (trainer_of(s) or ("",))[0] == "RLOOTrainer":
        yield note(f"max_tool_calling_iterations {rounds} has no counterpart in TRL's RLOOTrainer, which has no tools")
    else:
        yield from config_lines({"max_tool_calling_iterations": rounds})
    step = s.num_prompts * s.num_generations // s.num_minibatches
    # TRL's bnpo averages over the tokens of a part, not of the optimizer step.
    at_once = parts_of(step, step if loss_type(s) == "bnpo" else s.per_device_train_batch_size)
    yield from batch_lines("completions", step, at_once, s.per_device_train_batch_size)
    parts = s.num_minibatches * step // at_once
    yield f"steps_per_generation={parts},  # as many parts have {s.num_prompts} prompts' completions"
    yield from config_lines({"num_iterations": s.num_iterations, "disable_dropout": True})
    yield from config_lines({"router_aux_loss_coef": s.router_aux_loss_coef})  # TRL's default is the model's own


def _grpo(s: Settings, kind: str) -> Iterator[Field]:
    """The fields of GRPOConfig, or of GMPOConfig, whose trainer has only one loss and one ratio level."""
    own, beta = kind == "GRPOTrainer", s.beta if s.kl_placement == "loss" else 0.0
    yield from config_lines({"loss_type": loss_type(s), "scale_rewards": s.scale_rewards,
                      "multi_objective_aggregation": s.multi_objective_aggregation,
                      "importance_sampling_level": s.importance_sampling_level if own else None})  # fmt: skip
    yield from config_lines(_bounds(s) | {"beta": beta})
    if beta:
        yield from config_lines({"use_bias_correction_kl": s.use_bias_correction_kl if own else None})
        if s.kl_estimator != "k3":
            yield note(f"kl_estimator {s.kl_estimator} has no counterpart in TRL, whose KL term is k3")
    elif s.beta:
        yield note(f"kl_placement {s.kl_placement} gives beta {written(s.beta)} no effect, so beta is 0 here")
    yield from config_lines(
        {"mask_truncated_completions": s.mask_truncated_completions, "top_entropy_quantile": s.top_entropy_quantile,
         "off_policy_mask_threshold": s.off_policy_mask_threshold, "entropy_coef": s.entropy_coef}
    )  # fmt: skip
    if s.importance_sampling_mode != "none":  # TRL corrects for vLLM, which the script does not use
        yield note("TRL corrects with use_vllm=True, then as follows")
        names = ("mode", "clip_max", "clip_min")
        yield from (
            f"vllm_importance_sampling_{name}={literal(getattr(s, f'importance_sampling_{name}'))}," for name in names
        )
    if s.use_adaptive_entropy:
        adapts = (
            "use_adaptive_entropy",
            "entropy_coef_min",
            "entropy_coef_max",
            "entropy_coef_delta",
            "entropy_target",
        )
        yield from config_lines({name: getattr(s, name) for name in adapts})


def _bounds(s: Settings) -> dict[str, Any]:
    """The settings that bound the surrogate."""
    own = [name for name in Settings.__struct_fields__ if name.startswith(f"{s.surrogate}_")]
    return {"epsilon": s.epsilon, "epsilon_high": s.epsilon_high, "delta": s.delta} | {n: getattr(s, n) for n in own}


def _rloo(s: Settings) -> Iterator[Field]:
    low, high = s.reward_clip_min, s.reward_clip_max
    if low is not None or high is not None:
        bounds = (f'float("{"-" * (i == 0)}inf")' if b is None else literal(b) for i, b in enumerate((low, high)))
        yield f"reward_clip_range=({', '.join(bounds)}),"
    yield from config_lines({"normalize_advantages": s.scale_rewards == "answers" or None})
    yield from config_lines({"epsilon": s.epsilon, "epsilon_high": s.epsilon_high, "beta": s.beta,
                      "mask_truncated_completions": s.mask_truncated_completions})  # fmt: skip


def _left_out(s: Settings) -> Iterator[Field]:
    """Comments on settings without a counterpart."""
    if s.gamma != 1:
        yield note(f"gamma {written(s.gamma)} has no counterpart in TRL, and no effect with returns=broadcast")
    for name in (
        "sampler_dtype",
        "sampler_lag",
        "weight_sync_steps",
        "max_staleness",
        "logprobs_mode",
        "old_logprobs_of",
    ):
        if getattr(s, name) != getattr(Settings(), name):
            value = written(getattr(s, name))
            yield note(f"{name} {value} has no counterpart here: without vLLM TRL samples from the policy itself")
    if s.dynamic_sampling:
        yield note("dynamic_sampling has no counterpart in TRL: it does not replace groups without signal")
    if s.retokenize_turns:
        yield note("retokenize_turns has no counterpart in TRL: it trains on the tokens that were sampled")
    if s.kl_ctrl != "fixed":
        aim = f"target_kl {written(s.target_kl)}, kl_horizon {s.kl_horizon}"
        yield note(f"kl_ctrl {s.kl_ctrl} ({aim}) has no counterpart in TRL: beta stays constant")
