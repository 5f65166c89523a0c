"""What a loss on given answers takes for an answer's score: of each token, then of the whole answer.

A share is what a token adds: a function of `logprobs` ℓ, `ref_logprobs` ℓ_ref, `mask` and `beyond` (the token is beyond
the length of the shorter answer of its pair), all [..., L]. `total`, the sum of an answer's shares, may then be bent.
"""

from __future__ import annotations

import math
from typing import Any

from rlplay.algorithms.choice import Choice


def log_ratio(xp: Any, logprobs: Any, ref_logprobs: Any) -> Any:  # noqa: ARG001
    """ℓ − ℓ_ref."""
    return logprobs - ref_logprobs


def desensitized(xp: Any, logprobs: Any, ref_logprobs: Any, beyond: Any, ld_alpha: float | None) -> Any:
    """ℓ − ℓ_ref, times α beyond the length of the pair's shorter answer (LD-DPO, Liu et al. 2024, arXiv:2409.06411)."""
    found = logprobs - ref_logprobs
    return found if ld_alpha is None else xp.let("u", xp.where(beyond, ld_alpha, 1.0)) * found


def own(xp: Any, logprobs: Any) -> Any:  # noqa: ARG001
    """ℓ: no reference."""
    return logprobs


def averaged(xp: Any, logprobs: Any, mask: Any) -> Any:
    """ℓ/n: no reference; the mean keeps long answers from scoring lower for their length."""
    return logprobs / xp.count_over(mask)


def log_odds(xp: Any, total: Any) -> Any:
    """log(p/(1 − p)), p the exponential of the sum of the shares."""
    return xp.log_odds(total)


def reverse_kl(xp: Any, total: Any) -> Any:  # noqa: ARG001
    """f′ of f(u) = u·log u, without its constant: DPO's own."""
    return total


def forward_kl(xp: Any, total: Any) -> Any:
    """f′ of f(u) = −log u, plus 1."""
    return 1 - xp.exp(-total)


def js_divergence(xp: Any, total: Any) -> Any:
    """log(2u/(1 + u)), f′ of the Jensen–Shannon divergence."""
    return math.log(2) + xp.logsigmoid(total)


def alpha_divergence(xp: Any, total: Any, f_alpha_divergence_coef: float) -> Any:
    """(uᵃ⁻¹ − 1)/(a − 1); log u at a = 1."""
    power = f_alpha_divergence_coef - 1
    return total if abs(power) < 1e-6 else xp.expm1(power * total) / power


F_DIVERGENCES: dict[str, Choice] = {
    row.name: row
    for row in (
        Choice("reverse_kl", reverse_kl, "DPO's own, log u."),
        Choice("forward_kl", forward_kl, "1 − 1/u, which falls without limit and rises to 1."),
        Choice("js_divergence", js_divergence, "log(2u/(1 + u)), which rises to log 2."),
        Choice("alpha_divergence", alpha_divergence, "(uᵃ⁻¹ − 1)/(a − 1), between the two."),
    )
}
"""By `f_divergence_type`: the score of an answer whose ratio u has the logarithm `total` (Wang et al. 2023,
arXiv:2309.16240). TRL keeps exp of the last one finite by cutting its argument at 80."""


def diverged(xp: Any, total: Any, f_divergence_type: str, f_alpha_divergence_coef: float) -> Any:
    """f′(u), u the answer's ratio to the reference."""
    chosen = F_DIVERGENCES[f_divergence_type].compute
    assert chosen is not None
    rest = {"f_alpha_divergence_coef": f_alpha_divergence_coef} if chosen is alpha_divergence else {}
    return chosen(xp, total, **rest)


def reshaped(xp: Any, total: Any, alpha: float) -> Any:
    """(1 − p^−α)/α, p the exponential of the sum of the shares: AlphaPO's reward (arXiv:2501.03884); log p at α = 0."""
    return total if alpha == 0 else (1 - xp.exp(-alpha * total)) / alpha
