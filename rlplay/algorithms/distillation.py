"""What the policy takes over from a teacher at every token. Rows at the end.

p is the policy's distribution over the next token, q the teacher's; both are given as log-probabilities. A divergence
over whole distributions acts on every candidate, a mode that reads the sampled token alone on that one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from rlplay.algorithms.choice import Choice
from rlplay.trace.numbers import compact


class Distilled(Protocol):
    """The settings that a mode reads to write its equation."""

    @property
    def distillation_alpha(self) -> float:
        """Which divergence."""

    @property
    def distillation_topk(self) -> int:
        """Candidates that count."""

    @property
    def distillation_add_tail(self) -> bool:
        """Whether the others count as one."""


def generalized(xp: Any, policy: Any, teacher: Any, distillation_alpha: float) -> Any:
    """α·KL(q ‖ m) + (1 − α)·KL(p ‖ m), m = (1 − α)·p + α·q, of log-probabilities [..., V]: [...].

    The generalised Jensen-Shannon divergence (Agarwal et al. 2023, arXiv:2306.13649, equation 1). At 0 and 1, where it
    is 0 for any p and q, it is what its quotient by α·(1 − α) tends to: forward KL(q ‖ p) and reverse KL(p ‖ q).
    """
    if distillation_alpha == 0:
        return (xp.exp(teacher) * (teacher - policy)).sum(-1)
    if distillation_alpha == 1:
        return (xp.exp(policy) * (policy - teacher)).sum(-1)
    one, other = policy + math.log(1 - distillation_alpha), teacher + math.log(distillation_alpha)
    mixture = xp.maximum(one, other) + xp.log1p(xp.exp(-xp.abs(one - other)))
    of_teacher = (xp.exp(teacher) * (teacher - mixture)).sum(-1)
    of_policy = (xp.exp(policy) * (policy - mixture)).sum(-1)
    return distillation_alpha * of_teacher + (1 - distillation_alpha) * of_policy


def sampled_token(xp: Any, logprobs: Any, teacher_logprobs: Any) -> Any:
    """sg[ℓ − ℓ_T]·ℓ, whose gradient over sampled tokens is that of the reverse KL on average."""
    return xp.stop_gradient(logprobs - teacher_logprobs) * logprobs


def bounded(xp: Any, divergence: Any, log_ratio: Any, distillation_is_clip: float) -> Any:
    """The divergence times the ratio, at most `distillation_is_clip`, without its gradient."""
    return divergence * xp.stop_gradient(xp.clip(xp.exp(xp.clip(log_ratio, -20.0, 20.0)), high=distillation_is_clip))


def credit(xp: Any, old_logprobs: Any, teacher_logprobs: Any, mask: Any, iw_opd_gamma: float) -> Any:
    """u·(ℓ_T − ℓ_old), the reverse KL of a sampled token as an advantage, 0 outside the mask: [N, L].

    u = 1 + γ·(1 − share of Σ|ℓ_T − ℓ_old| that the tokens before this one have), so that early tokens count more
    (importance-weighted on-policy distillation); 1 with γ = 0.
    """
    gap = xp.where(mask, teacher_logprobs - old_logprobs, 0.0)
    if not iw_opd_gamma:
        return gap
    size = xp.abs(gap)
    before = xp.cumsum(size) - size
    return (1 + iw_opd_gamma * (1 - before / xp.clip(xp.sum_over(size, mask), low=1e-8))) * gap


def _divergence(s: Distilled) -> str:
    """The divergence as an equation; p_T is the teacher's probability."""
    if s.distillation_alpha == 0:
        return "Σᵥ p_T·log(p_T/p)"
    if s.distillation_alpha == 1:
        return "Σᵥ p·log(p/p_T)"
    own, other = compact(1 - s.distillation_alpha), compact(s.distillation_alpha)
    return f"{other}·Σᵥ p_T·log(p_T/m) + {own}·Σᵥ p·log(p/m), m = {own}·p + {other}·p_T"


def _of_few(s: Distilled) -> str:
    rest = "and all others together as one" if s.distillation_add_tail else "scaled to sum to 1"
    return f"{_divergence(s)}; v: the policy's {s.distillation_topk} likeliest tokens, {rest}"


@dataclass(frozen=True)
class Mode(Choice):
    """A way of following the teacher. `whole`: it reads whole distributions, of which `few` candidates may count.

    `compute` is None where the teacher acts through the advantage, and no term of the loss is the teacher's.
    """

    equation: Callable[[Distilled], str] = _divergence
    whole: bool = False
    few: bool = False


MODES: dict[str, Mode] = {
    row.name: row
    for row in (
        Mode("full_logits", generalized, "the divergence over the whole vocabulary.", "arXiv:2306.13649", whole=True),
        Mode(
            "topk_logits", generalized, "the divergence over the policy's likeliest tokens alone.", "arXiv:2601.20802",
            equation=_of_few, whole=True, few=True,
        ),
        Mode(
            "sampled_token", sampled_token, "the reverse KL's gradient, estimated at the sampled token.",
            "arXiv:2601.20802", equation=lambda _: "sg[ℓ − ℓ_T]·ℓ",
        ),
        Mode(
            "advantage", None, "the teacher's log-probability less the policy's is the token's advantage, for any "
            "surrogate.",
            equation=lambda _: "",
        ),
    )
}  # fmt: skip
