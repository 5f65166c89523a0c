"""The loss of some completions, as the settings' axes combine it, and what it says of every token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.engine.axes import kl, surrogates
from rlplay.scenario.settings import Settings


@dataclass
class Terms:
    """What the loss consists of. Tensors [R, L]; `kl` is the per-token term as trained, None where β is not in it."""

    loss: Tensor
    policy_loss: Tensor
    ratio: Tensor
    clip_state: Tensor
    kl: Tensor | None
    value_loss: Tensor | None


def objective(
    logprobs: Tensor,
    old_logprobs: Tensor,
    ref_logprobs: Tensor,
    advantages: Tensor,
    weights: Tensor,
    settings: Settings,
) -> Terms:
    """loss = Σ_t weight_t · (surrogate_t + β · kl_t), tensors [R, L], weights 0 on padding.

    With `use_bias_correction_kl` the KL term is multiplied by the ratio, so that its gradient is unbiased when the
    completions were sampled by an older policy (TRL's default).
    """
    inside = weights > 0
    ratio = torch.where(inside, logprobs - old_logprobs, 0.0).exp()
    high = settings.epsilon if settings.epsilon_high is None else settings.epsilon_high
    if settings.surrogate == "ppo":
        token_loss = surrogates.ppo(ratio, advantages, settings.epsilon, high)
        clipped = surrogates.clip_state(ratio.detach(), advantages, settings.epsilon, high)
    else:
        token_loss = surrogates.logp(logprobs, advantages)
        clipped = torch.zeros_like(inside, dtype=torch.int8)
    policy_loss = (weights * torch.where(inside, token_loss, 0.0)).sum()
    loss, token_kl = policy_loss, None
    if settings.kl_placement == "loss" and settings.beta:
        reference = torch.where(inside, ref_logprobs, logprobs.detach())
        token_kl = kl.estimate(settings.kl_estimator, logprobs, reference)
        if settings.use_bias_correction_kl:
            token_kl = token_kl * ratio
        loss = loss + settings.beta * (weights * token_kl).sum()
    return Terms(loss, policy_loss, ratio, clipped, token_kl, None)


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float, count: int) -> Tensor:
    """½ Σ max((v − R)², (clip(v, v_old ± clip) − R)²) / count over sampled tokens (PPO's clipped value loss)."""
    near = old_values + (values - old_values).clamp(-clip, clip)
    worst = torch.max((values - returns) ** 2, (near - returns) ** 2)
    return 0.5 * (worst * mask).sum() / count
