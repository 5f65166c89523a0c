"""KL divergence per token: estimates from the sampled token, the exact sum, and coefficients that adapt."""

from __future__ import annotations

from torch import Tensor


def estimate(name: str, logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """KL(p ‖ q) at one token sampled from p, `logprobs` under p and `ref_logprobs` under q, shapes alike.

    k1 = −x (unbiased, may be negative), k2 = x²/2, k3 = eˣ − x − 1 (never negative), x = log q − log p (Schulman,
    "Approximating KL divergence"). Raises KeyError for another name.
    """
    x = ref_logprobs - logprobs
    return {"k1": lambda: -x, "k2": lambda: x**2 / 2, "k3": lambda: x.expm1() - x}[name]()


def exact(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """KL(p ‖ q) = Σ_v p·(log p − log q) of whole distributions given as log-probabilities [..., V]: [...]."""
    return (logprobs.exp() * (logprobs - ref_logprobs)).sum(-1)


def ziegler(beta: float, kl: float, target: float, completions: int, horizon: int) -> float:
    """β·(1 + clip(kl/target − 1, ±0.2)·n/horizon) (Ziegler et al. 2019, arXiv:1909.08593, section 2.2)."""
    error = min(max(kl / target - 1, -0.2), 0.2)
    return beta * (1 + error * completions / horizon)


def halve_or_double(beta: float, kl: float, target: float) -> float:
    """β/2 if kl < target/1.5, 2β if kl > 1.5·target, else β (Schulman et al. 2017, arXiv:1707.06347, section 4)."""
    if kl < target / 1.5:
        return beta / 2
    return 2 * beta if kl > 1.5 * target else beta
