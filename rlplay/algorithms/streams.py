"""Helpers for the stream r_t of token rewards: step scores, shaping, length penalty. The credit phase uses them."""

from __future__ import annotations

from typing import Any

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


def overlong(xp: Any, lengths: Any, limit: int, buffer: int) -> Any:
    """0 up to limit − buffer tokens, then falling linearly to −1 at the limit: lengths [N] -> [N].

    Yu et al. 2025 (DAPO), arXiv:2503.14476, equation 13.
    """
    return -xp.clip((lengths - (limit - buffer)) / buffer, 0, 1)
