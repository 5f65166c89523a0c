"""The objective per token, as a loss: what is minimised is its aggregate. All tensors [N, L].

w is the importance weight, A the advantage, ℓ the log-probability under the policy that is trained.
"""

from __future__ import annotations

import torch
from torch import Tensor


def logp(logprobs: Tensor, advantages: Tensor) -> Tensor:
    """−A·ℓ, the plain policy gradient (Williams 1992)."""
    return -advantages * logprobs


def ratio(weight: Tensor, advantages: Tensor) -> Tensor:
    """−w·A, without a bound (Kakade and Langford 2002; PPO with a KL penalty, arXiv:1707.06347, equation 8)."""
    return -weight * advantages


def ppo(weight: Tensor, advantages: Tensor, epsilon: float, epsilon_high: float, delta: float | None = None) -> Tensor:
    """−min(w·A, clip(w, 1 − ε, 1 + ε_high)·A) (Schulman et al. 2017, arXiv:1707.06347, equation 7).

    `delta` bounds the first w too, which matters where A < 0 (dual clip, Ye et al. 2020, arXiv:1912.09729;
    TRL's `delta`, verl's `clip_ratio_c`).
    """
    clipped = weight.clamp(1 - epsilon, 1 + epsilon_high)
    free = weight if delta is None else weight.clamp(max=delta)
    return -torch.min(free * advantages, clipped * advantages)


def clip_state(
    weight: Tensor, advantages: Tensor, epsilon: float, epsilon_high: float, delta: float | None = None
) -> Tensor:
    """Where `ppo` has gradient exactly 0: +1 (A > 0, w > 1 + ε_high), −1 (A < 0, w < 1 − ε), +2 (A < 0, w > δ).

    Else 0. int8.
    """
    high = (advantages > 0) & (weight > 1 + epsilon_high)
    low = (advantages < 0) & (weight < 1 - epsilon)
    state = high.to(torch.int8) - low.to(torch.int8)
    return state if delta is None else state + 2 * ((advantages < 0) & (weight > delta)).to(torch.int8)


def cispo(logprobs: Tensor, weight: Tensor, advantages: Tensor, cap: float) -> Tensor:
    """−sg[min(w, cap)]·A·ℓ: the weight is bounded, the gradient never lost (MiniMax 2025, arXiv:2506.13585)."""
    return -weight.detach().clamp(max=cap) * advantages * logprobs


def sapo(weight: Tensor, advantages: Tensor, temperature_pos: float, temperature_neg: float) -> Tensor:
    """−(4/τ)·σ(τ(w − 1))·A with τ by the sign of A (Gao et al. 2025, arXiv:2511.20347)."""
    tau = _by_sign(advantages > 0, temperature_pos, temperature_neg, advantages)
    return -4 / tau * torch.sigmoid(tau * (weight - 1)) * advantages


def vespo(
    logprobs: Tensor, change: Tensor, advantages: Tensor, mask: Tensor,
    positive: tuple[float, float], negative: tuple[float, float],
) -> Tensor:  # fmt: skip
    """−sg[φ(W)]·A·ℓ, φ(W) = exp(λ + k·log W − λ·W), W the ratio of the whole completion (arXiv:2602.10693).

    `positive` and `negative` are (k, λ) for A ≥ 0 and A < 0. As in TRL, token log-ratios are bounded to ±20 and
    log W to [log 1e-8, 20].
    """
    total = (change.detach().clamp(-20, 20) * mask).sum(-1, keepdim=True).clamp(-18.420680743952367, 20)
    k = _by_sign(advantages >= 0, positive[0], negative[0], advantages)
    decay = _by_sign(advantages >= 0, positive[1], negative[1], advantages)
    return -torch.exp(decay + k * total - decay * total.exp()) * advantages * logprobs


def _by_sign(condition: Tensor, yes: float, no: float, like: Tensor) -> Tensor:
    """`yes` where the condition holds and `no` elsewhere, in the precision of `like`."""
    return torch.where(condition, like.new_tensor(yes), like.new_tensor(no))
