"""Per-token estimates of KL(policy ‖ reference) from one sampled token (Schulman, "Approximating KL divergence")."""

from __future__ import annotations

from torch import Tensor


def estimate(name: str, logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    """k1 = −x (unbiased, may be negative), k2 = x²/2, k3 = eˣ − x − 1 (never negative), x = ref − policy.

    Shapes alike. Raises KeyError for another name.
    """
    x = ref_logprobs - logprobs
    return {"k1": lambda: -x, "k2": lambda: x**2 / 2, "k3": lambda: x.expm1() - x}[name]()
