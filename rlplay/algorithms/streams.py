"""Helpers for the stream r_t of token rewards: step scores, shaping, length penalty. The credit phase uses them."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from rlplay.algorithms.statistics import count, group_statistics


def normalized(xp: Any, steps: Any, ends: Any, group: Any, epsilon: float) -> Any:
    """Step scores in units of their group's spread: (s − mean) / (std + epsilon) over all steps of a group.

    `steps` [N, L] holds a score where `ends` (bool) marks the end of a step; the result is 0 elsewhere. ddof = 1
    (Shao et al. 2024, arXiv:2402.03300, section 4.1.3).
    """
    place = group[:, None] + 0 * xp.places(steps)
    mean, std = group_statistics(xp, steps[ends], place[ends], count(group))
    return xp.where(ends, (steps - mean[place]) / (std[place] + epsilon), xp.zeros_like(steps))


def shaped(xp: Any, steps: Any, mask: Any, last: Any, gamma: float) -> Any:
    """F_t = γΦ(s_t+1) − Φ(s_t), with the step scores collected so far as potential Φ: [N, L] -> [N, L].

    Φ is 0 at the start and once a completion is finished, so that F telescopes: reward moves to where progress is
    made, and which policy is best does not change (Ng, Harada and Russell 1999).
    """
    after = xp.cumsum(steps * mask) * (xp.places(steps) < last[:, None])
    before = xp.zeros_like(after)
    before[:, 1:] = after[:, :-1]
    return (gamma * after - before) * mask


def best_of(outcomes: Any, group: Any, k: int) -> Any:
    """The best outcome among a completion and k − 1 of its siblings, the mean over all choices of these: [N] -> [N].

    What a completion is paid by pass@k, for any rewards (Walder and Karkhanis 2025, arXiv:2505.15201); of rewards of 0
    and 1 the analytic pass@k of Chen et al. 2025, arXiv:2508.10751. In a smaller group k is its size. Arrays of numpy.
    """
    found = np.empty_like(outcomes)
    for number in np.unique(group):
        (members,) = np.nonzero(group == number)
        rewards = np.sort(outcomes[members])
        size, others = min(k, len(members)), len(members) - 1
        # Of the choices that an answer is in, C(j − 1, k − 2) have the one of place j, which is better, as their best.
        shares = [comb(j - 1, size - 2) / comb(others, size - 1) if j and size > 1 else 0.0 for j in range(others + 1)]
        above = np.maximum(rewards - outcomes[members][:, None], 0.0)
        found[members] = outcomes[members] + (above * shares).sum(1)
    return found


def overlong(xp: Any, lengths: Any, limit: int, buffer: int) -> Any:
    """0 up to limit − buffer tokens, then falling linearly to −1 at the limit: lengths [N] -> [N].

    Yu et al. 2025 (DAPO), arXiv:2503.14476, equation 13.
    """
    return -xp.clip((lengths - (limit - buffer)) / buffer, 0, 1)
