"""The scales: what advantages are divided by. A row at the end for each; `raw` [N, L] are the unscaled advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice
from rlplay.algorithms.statistics import group_std, moments

STD_EPSILON = 1e-4
"""Added to a standard deviation of rewards before dividing, as TRL does; it matters if rewards are nearly equal."""
WHITEN_EPSILON = 1e-8
"""Added to the variance when whitening, as in TRL's former PPO."""


def none(xp: Any, raw: Any) -> Any:  # noqa: ARG001
    """By nothing (Dr. GRPO, arXiv:2503.20783)."""
    return raw


def group(xp: Any, raw: Any, outcomes: Any, group: Any) -> Any:
    """By the standard deviation (ddof = 1) of the outcomes [N] within each completion's group."""
    return raw / (group_std(xp, outcomes, group) + STD_EPSILON)[:, None]


def batch(xp: Any, raw: Any, outcomes: Any, group: Any) -> Any:
    """By the standard deviation (ddof = 1) of the outcomes [N] over the batch."""
    return raw / (group_std(xp, outcomes, xp.zeros_like(group)) + STD_EPSILON)[:, None]


def whiten(xp: Any, raw: Any, mask: Any) -> Any:
    """Shifted and scaled to mean 0 and variance 1 over all sampled tokens (ddof = 1)."""
    chosen = raw[mask]
    mean, variance = moments(xp, chosen, xp.indices_like(chosen), 1)
    return (raw - mean) * xp.rsqrt(variance + WHITEN_EPSILON) * mask


@dataclass(frozen=True)
class Scale(Choice):
    """A scale and its equation."""

    equation: str = ""


SCALES: dict[str, Scale] = {
    row.name: row
    for row in (
        Scale("none", none, "nothing (Dr. GRPO).", "arXiv:2503.20783", equation="G − b"),
        Scale(
            "group", group, "the group's std, so very easy and very hard prompts gain weight.", "arXiv:2402.03300",
            equation=f"(G − b)/(σ + {STD_EPSILON:g}), σ = std of the group's rewards",
        ),
        Scale(
            "batch", batch, "the batch's std.", "arXiv:2508.08221",
            equation=f"(G − b)/(σ + {STD_EPSILON:g}), σ = std of the batch's rewards",
        ),
        Scale(
            "whiten", whiten, "mean 0 and variance 1 over all tokens.",
            equation="(G − b − μ)/σ, μ and σ of all tokens' G − b",
        ),
    )
}  # fmt: skip
