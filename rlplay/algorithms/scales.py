"""The scales: what advantages are divided by. A row at the end for each; `raw` [N, L] are the unscaled advantages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice
from rlplay.algorithms.statistics import group_mean, group_statistics, group_std, moments

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


def mean(xp: Any, raw: Any, outcomes: Any, group: Any) -> Any:
    """By the mean outcome of each completion's group; 0 where that is not above 0 (MaxRL, arXiv:2602.02710)."""
    of_group = group_mean(xp, outcomes, group)[:, None]
    some = of_group > 0
    return xp.where(some, raw / xp.where(some, of_group, 1.0), 0.0)


def pass_rate(xp: Any, raw: Any, outcomes: Any, group: Any) -> Any:
    """By √(p·(1 − p)) of the mean outcome p of each completion's group; 0 where p is not between 0 and 1.

    The standard deviation of a reward of 0 or 1, which is that of pass@k (Chen et al. 2025, arXiv:2508.10751,
    equations 11 to 15).
    """
    rate = group_mean(xp, outcomes, group)[:, None]
    between = (rate > 0) & (rate < 1)
    return xp.where(between, raw / xp.sqrt(xp.where(between, rate * (1 - rate), 1.0)), 0.0)


def batch(xp: Any, raw: Any, outcomes: Any, group: Any) -> Any:
    """By the standard deviation (ddof = 1) of the outcomes [N] over the batch."""
    return raw / (group_std(xp, outcomes, xp.zeros_like(group)) + STD_EPSILON)[:, None]


def answers(xp: Any, raw: Any, mask: Any) -> Any:
    """Shifted and scaled to mean 0 and standard deviation 1 (ddof = 1) over the completions' own means.

    TRL's `normalize_advantages`.
    """
    each = xp.mean_over(raw, mask)[:, 0]
    mu, sigma = group_statistics(xp, each, xp.indices_like(each), 1)
    return (raw - mu) / (sigma + STD_EPSILON) * mask


def whiten(xp: Any, raw: Any, mask: Any) -> Any:
    """Shifted and scaled to mean 0 and variance 1 over all sampled tokens (ddof = 1)."""
    chosen = raw[mask]
    mean, variance = moments(xp, chosen, xp.indices_like(chosen), 1)
    return (raw - mean) * xp.rsqrt(variance + WHITEN_EPSILON) * mask


@dataclass(frozen=True)
class Scale(Choice):
    """A scale and its equation, which calls what advantages are divided by the `divisor`. `shifts`: a mean μ is
    subtracted first. With `siblings`, it compares several answers to a prompt."""

    equation: str = ""
    divisor: str = "σ"
    shifts: bool = False
    siblings: bool = False


SCALES: dict[str, Scale] = {
    row.name: row
    for row in (
        Scale("none", none, "nothing (Dr. GRPO).", "arXiv:2503.20783", equation="G − b"),
        Scale(
            "group", group, "the group's std, so very easy and very hard prompts gain weight.", "arXiv:2402.03300",
            equation=f"(G − b)/(σ + {STD_EPSILON:g}), σ = std of the group's rewards", siblings=True,
        ),
        Scale(
            "batch", batch, "the batch's std.", "arXiv:2508.08221",
            equation=f"(G − b)/(σ + {STD_EPSILON:g}), σ = std of the batch's rewards",
        ),
        Scale(
            "mean", mean, "the group's mean reward, so a rare success weighs more (MaxRL); for rewards of at least 0.",
            "arXiv:2602.02710", equation="(G − b)/m, m = mean reward of the group, or 0 if m ≤ 0", divisor="m",
            siblings=True,
        ),
        Scale(
            "pass_rate", pass_rate, "√(p·(1 − p)) of the group's mean reward p, for rewards of 0 and 1.",
            "arXiv:2508.10751", equation="(G − b)/σ, σ = √(p·(1 − p)), p = mean reward of the group", siblings=True,
        ),
        Scale(
            "answers", answers, "mean 0 and variance 1 over all answers.",
            equation=f"(G − b − μ)/(σ + {STD_EPSILON:g}), μ and σ of all answers' G − b", shifts=True,
        ),
        Scale(
            "whiten", whiten, "mean 0 and variance 1 over all tokens.",
            equation="(G − b − μ)/σ, μ and σ of all tokens' G − b", shifts=True,
        ),
    )
}  # fmt: skip
