"""Estimators of the KL divergence at one token, and coefficients that adapt to it.

An estimator takes x, the logarithm of the other policy's probability over that of the policy that is assumed to have
sampled the token (Schulman, "Approximating KL divergence").
"""

from __future__ import annotations

from typing import Any

from rlplay.algorithms.choice import Choice


def k1(xp: Any, log_ratio: Any) -> Any:  # noqa: ARG001
    """−x: unbiased, may be negative."""
    return -log_ratio


def k2(xp: Any, log_ratio: Any) -> Any:  # noqa: ARG001
    """x²/2."""
    return log_ratio**2 / 2


def k3(xp: Any, log_ratio: Any) -> Any:
    """eˣ − x − 1: unbiased, never negative."""
    return xp.expm1(log_ratio) - log_ratio


def absolute(xp: Any, log_ratio: Any) -> Any:
    """|log p − log q|: no estimate of the KL, but a pull back of constant strength (verl's `abs`)."""
    return xp.abs(log_ratio)


def full(xp: Any, logprobs: Any, other_logprobs: Any) -> Any:
    """Σ_v p·(log p − log q) of whole distributions given as log-probabilities [..., V]: [...]."""
    return (xp.exp(logprobs) * (logprobs - other_logprobs)).sum(-1)


ESTIMATORS: dict[str, Choice] = {
    row.name: row
    for row in (
        Choice("k1", k1, "may be negative."),
        Choice("k2", k2, "half the square."),
        Choice("k3", k3, "never negative."),
        Choice("abs", absolute, "the absolute value.", verl="abs"),
        Choice("full", full, "exact, over the whole vocabulary."),
    )
}


def ziegler(beta: float, kl: float, target: float, completions: int, horizon: int) -> float:
    """β·(1 + clip(kl/target − 1, ±0.2)·n/horizon) (Ziegler et al. 2019, arXiv:1909.08593, section 2.2)."""
    error = min(max(kl / target - 1, -0.2), 0.2)
    return beta * (1 + error * completions / horizon)


def halve_or_double(beta: float, kl: float, target: float) -> float:
    """β/2 if kl < target/1.5, 2β if kl > 1.5·target, else β (Schulman et al. 2017, arXiv:1707.06347, section 4)."""
    if kl < target / 1.5:
        return beta / 2
    return 2 * beta if kl > 1.5 * target else beta
