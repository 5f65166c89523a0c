"""Masks that leave some tokens' surrogates out of the loss. All arrays are [N, L]."""

from __future__ import annotations

from typing import Any


def top_entropy(xp: Any, entropy: Any, mask: Any, share: float) -> Any:
    """The `share` of the sampled tokens at which the policy was most undecided: bool.

    A token counts if its entropy when sampled reaches the (1 − share) quantile over the mask (Wang et al. 2025,
    arXiv:2506.01939).
    """
    if share >= 1 or not bool(mask.any()):
        return mask
    return mask & (entropy >= xp.quantile(entropy[mask], 1 - share))


def on_policy(xp: Any, log_ratio: Any, advantages: Any, mask: Any, threshold: float) -> Any:
    """Where a token counts: A ≥ 0, or its completion's mean log(old/new) is at most `threshold`: bool.

    Off-policy sequence masking (DeepSeek-V3.2, arXiv:2512.02556).
    """
    return (advantages >= 0) | (xp.mean_over(-xp.stop_gradient(log_ratio), mask) <= threshold)


def covariance(xp: Any, advantages: Any, logprobs: Any, mask: Any) -> Any:
    """(A − mean A)·(log p − mean log p), means over all tokens of the mask: how a step moves the entropy at each token.

    The entropy falls by about the step size times its mean (Cui et al. 2025, arXiv:2505.22617, theorem 1).
    """
    count = xp.clip(xp.count_over(mask).sum(), low=1)
    means = (xp.sum_over(x, mask).sum() / count for x in (advantages, logprobs))
    return (advantages - next(means)) * (logprobs - next(means))
