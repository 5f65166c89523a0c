"""The loss of some completions, as the settings' axes combine it, and what it says of every token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.engine.axes import kl, ratios, surrogates


@dataclass
class Inputs:
    """What the loss reads of some completions, each [R, L] or None where the settings do not ask for it.

    Only `logprobs`, `distribution` and `entropy` carry gradients: log-probability of each token, whole next-token
    distribution [R, L, V] and its entropy under the policy that is trained. `anchor` [R, L, V] belongs to the exact KL.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    ref_logprobs: Tensor
    advantages: Tensor
    distribution: Tensor | None = None
    anchor: Tensor | None = None
    entropy: Tensor | None = None


@dataclass
class Terms:
    """What the loss consists of. Tensors [R, L]; `kl` is the per-token term as trained, None where β is not in it.

    `ratio` is the importance weight at the level of the settings; `clip_state` see `surrogates.clip_state`; `kept` is
    the weight of each token's surrogate, 0 where it is left out.
    """

    loss: Tensor
    policy_loss: Tensor
    kl_loss: Tensor | None
    kept: Tensor
    ratio: Tensor
    clip_state: Tensor
    kl: Tensor | None


def objective(
    inputs: Inputs, weights: Tensor, settings: Settings, beta: float,
    keep: Tensor | None = None, bonus: Tensor | None = None,
) -> Terms:  # fmt: skip
    """loss = Σ_t weight_t·(keep_t·surrogate_t + β·kl_t) − entropy_coef·Σ_t bonus_t·H_t.

    `weights`, `keep` and `bonus` are [R, L], `weights` 0 on padding; without `keep` every token's surrogate counts.
    With `use_bias_correction_kl` the KL to the reference is multiplied by the ratio, so that its gradient is unbiased
    when the completions were sampled by an older policy (TRL's default).
    """
    inside = weights > 0
    low, high = settings.clip_range
    change = torch.where(inside, inputs.logprobs - inputs.old_logprobs, 0.0)
    level = settings.importance_sampling_level
    ratio = ratios.log_ratio(level, change, inputs.advantages, inside, low, high).exp()
    surrogate = torch.where(inside, _surrogate(inputs, ratio, change, inside, settings), 0.0)
    kept = weights if keep is None else weights * keep
    if settings.off_policy_mask_threshold is not None:
        kept = kept * on_policy(change, inputs.advantages, inside, settings.off_policy_mask_threshold)
    policy_loss = (kept * surrogate).sum()
    loss, token_kl, kl_loss = policy_loss, None, None
    if settings.kl_placement == "loss" and beta:
        token_kl = torch.where(inside, _divergence(inputs, ratio, inside, settings), 0.0)
        kl_loss = beta * (weights * token_kl).sum()
        loss = loss + kl_loss
    if settings.entropy_coef and inputs.entropy is not None and bonus is not None:
        loss = loss - settings.entropy_coef * (bonus * inputs.entropy).sum()
    state = _clip_state(ratio, change, inputs.advantages, inside, settings)
    return Terms(loss, policy_loss, kl_loss, kept, ratio, state, token_kl)


def _surrogate(inputs: Inputs, ratio: Tensor, change: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    logprobs, advantages = inputs.logprobs, inputs.advantages
    low, high = settings.clip_range
    match settings.surrogate:
        case "logp":
            return surrogates.logp(logprobs, advantages)
        case "ratio" | "trpo":
            return surrogates.ratio(ratio, advantages)
        case "ppo":
            return surrogates.ppo(ratio, advantages, low, high, settings.delta)
        case "cispo":
            return surrogates.cispo(logprobs, ratio, advantages, high)
        case "sapo":
            return surrogates.sapo(ratio, advantages, settings.sapo_temperature_pos, settings.sapo_temperature_neg)
        case "vespo":
            positive = settings.vespo_k_pos, settings.vespo_lambda_pos
            negative = settings.vespo_k_neg, settings.vespo_lambda_neg
            return surrogates.vespo(logprobs, change, advantages, inside, positive, negative)


def _clip_state(ratio: Tensor, change: Tensor, advantages: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    """Where the surrogate's gradient is exactly 0 because of a bound: int8 [R, L]."""
    ratio, change = ratio.detach(), change.detach()
    low, high = settings.clip_range
    if settings.surrogate == "ppo":
        return surrogates.clip_state(ratio, advantages, low, high, settings.delta) * inside
    if settings.importance_sampling_level == "geometric":
        return surrogates.clip_state(change + 1, advantages, low, high) * inside
    return torch.zeros_like(ratio, dtype=torch.int8)


def _divergence(inputs: Inputs, ratio: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    """KL(policy ‖ reference), or KL(old ‖ policy) where the anchor is the policy that sampled."""
    to_old = settings.kl_anchor == "old"
    if settings.kl_estimator == "full":
        assert inputs.distribution is not None
        assert inputs.anchor is not None
        pair = (inputs.anchor, inputs.distribution) if to_old else (inputs.distribution, inputs.anchor)
        return kl.exact(*pair)
    if to_old:
        old = torch.where(inside, inputs.old_logprobs, inputs.logprobs.detach())
        return kl.estimate(settings.kl_estimator, old, inputs.logprobs)
    reference = torch.where(inside, inputs.ref_logprobs, inputs.logprobs.detach())
    estimated = kl.estimate(settings.kl_estimator, inputs.logprobs, reference)
    return estimated * ratio if settings.use_bias_correction_kl else estimated


def on_policy(change: Tensor, advantages: Tensor, inside: Tensor, threshold: float) -> Tensor:
    """1 where a token may pull: A ≥ 0, or its completion's mean log(old/new) is at most `threshold`; else 0.

    Off-policy sequence masking (DeepSeek-V3.2, arXiv:2512.02556). All [R, L].
    """
    drift = -(change.detach() * inside).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True).clamp(min=1)
    return ((advantages >= 0) | (drift <= threshold)).to(change.dtype)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float, count: int) -> Tensor:
    """½ Σ max((v − R)², (clip(v, v_old ± clip) − R)²) / count over sampled tokens (PPO's clipped value loss)."""
    near = old_values + (values - old_values).clamp(-clip, clip)
    worst = torch.max((values - returns) ** 2, (near - returns) ** 2)
    return 0.5 * (worst * mask).sum() / count
