"""The baselines: what a completion's return is compared with. A row at the end for each.

For N completions: `outcomes` [N] are their summed rewards, `group` [N] the index of each one's prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice
from rlplay.algorithms.statistics import count, group_mean, weighted_mean


def none(xp: Any, outcomes: Any) -> Any:
    """0."""
    return xp.zeros_like(outcomes)


def batch_mean(xp: Any, outcomes: Any, group: Any) -> Any:
    """The mean outcome of the batch for every completion."""
    return group_mean(xp, outcomes, xp.zeros_like(group))


def mean_of_group(xp: Any, outcomes: Any, group: Any) -> Any:
    """The mean outcome of a completion's group, itself included (Shao et al. 2024, arXiv:2402.03300)."""
    return group_mean(xp, outcomes, group)


def leave_one_out(xp: Any, outcomes: Any, group: Any) -> Any:
    """The mean outcome of a completion's siblings, (ΣR − R_i)/(n − 1); its own outcome if it has none.

    Ahmadian et al. 2024, arXiv:2402.14740.
    """
    mean = group_mean(xp, outcomes, group)
    siblings = xp.sum_by(xp.ones_like(outcomes), group, count(group))[group] - 1
    return mean + (mean - outcomes) / xp.clip(siblings, low=1)


def length_weighted(xp: Any, outcomes: Any, lengths: Any, group: Any) -> Any:
    """Σ n_i R_i / Σ n_i over a completion's group (OPO, arXiv:2505.23585)."""
    return weighted_mean(xp, outcomes, lengths, group, count(group))[group]


def best_other(xp: Any, outcomes: Any, group: Any) -> Any:
    """The best outcome of a completion's siblings, at most its own: only the single best completion has an advantage.

    Tang et al. 2025, arXiv:2503.19595 (verl's `grpo_passk`). Its own outcome if it has no siblings.
    """
    groups = count(group)
    best = -xp.lowest_by(-outcomes, ~xp.isnan(outcomes), group, groups)[group]
    lower = outcomes < best
    second = -xp.lowest_by(-outcomes, lower, group, groups)[group]
    ties = xp.sum_by(xp.where(lower, xp.zeros_like(outcomes), xp.ones_like(outcomes)), group, groups)[group]
    siblings = xp.sum_by(xp.ones_like(outcomes), group, groups)[group] - 1
    return xp.where((siblings > 0) & (ties == 1) & ~lower, second, outcomes)


def greedy(xp: Any, greedy_rewards: Any) -> Any:  # noqa: ARG001
    """The reward of the likeliest completion of the same prompt (ReMax, arXiv:2310.10505)."""
    return greedy_rewards


def value(xp: Any, values: Any) -> Any:  # noqa: ARG001
    """The value head's prediction before every token, [N, L]."""
    return values


@dataclass(frozen=True)
class Baseline(Choice):
    """A baseline and its equation. With `siblings`, it compares several answers to a prompt."""

    equation: str = ""
    siblings: bool = False


BASELINES: dict[str, Baseline] = {
    row.name: row
    for row in (
        Baseline("none", none, "nothing.", equation="0"),
        Baseline("batch_mean", batch_mean, "the mean of all answers.", equation="mean reward of the batch"),
        Baseline(
            "group_mean", mean_of_group, "of the prompt's answers.", "arXiv:2402.03300",
            equation="mean reward of the group", siblings=True,
        ),
        Baseline(
            "leave_one_out", leave_one_out, "of the prompt's other answers.", "arXiv:2402.14740",
            equation="mean reward of the others in the group", siblings=True,
        ),
        Baseline(
            "best_other", best_other, "the best of the prompt's other answers, at most its own reward.",
            "arXiv:2503.19595", equation="the smaller of R and the best reward of the others in the group",
            siblings=True,
        ),
        Baseline(
            "length_weighted", length_weighted, "the group's mean, weighted by length.", "arXiv:2505.23585",
            equation="Σ n·reward / Σ n over the group", siblings=True,
        ),
        Baseline(
            "greedy", greedy, "the reward of the greedy answer.", "arXiv:2310.10505",
            equation="reward of the greedy answer",
        ),
        Baseline("value", value, "what the value head expects.", equation="V, what the value head expected"),
    )
}  # fmt: skip
