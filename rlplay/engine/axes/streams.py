"""Where reward arrives: the stream r_t of token rewards, before anything is summed or compared."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine.axes.baselines import group_statistics


def outcome(rewards: Tensor, last: Tensor, width: int) -> Tensor:
    """Rewards [N] on the `last` sampled token [N] of each completion: [N, width], 0 elsewhere."""
    stream = rewards.new_zeros(len(rewards), width)
    stream[torch.arange(len(rewards), device=rewards.device), last] = rewards
    return stream


def normalized(steps: Tensor, ends: Tensor, group: Tensor, epsilon: float) -> Tensor:
    """Step scores in units of their group's spread: (s − mean) / (std + epsilon) over all steps of a group.

    `steps` [N, L] holds a score where `ends` (bool) marks the end of a step; the result is 0 elsewhere. ddof = 1
    (Shao et al. 2024, arXiv:2402.03300, section 4.1.3).
    """
    place = group[:, None].expand_as(steps)
    mean, std = group_statistics(steps[ends], place[ends], int(group.max()) + 1)
    return ((steps - mean[place]) / (std[place] + epsilon)).where(ends, 0.0)


def shaped(steps: Tensor, mask: Tensor, last: Tensor, gamma: float) -> Tensor:
    """F_t = γΦ(s_t+1) − Φ(s_t), with the step scores collected so far as potential Φ: [N, L] -> [N, L].

    Φ is 0 at the start and once a completion is finished, so that F telescopes: reward moves to where progress is
    made, and which policy is best does not change (Ng, Harada and Russell 1999).
    """
    places = torch.arange(steps.shape[1], device=steps.device)
    after = (steps * mask).cumsum(-1) * (places < last[:, None])
    before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
    return (gamma * after - before) * mask


def overlong(lengths: Tensor, limit: int, buffer: int) -> Tensor:
    """0 up to limit − buffer tokens, then falling in a line to −1 at the limit: lengths [N] -> [N].

    Yu et al. 2025 (DAPO), arXiv:2503.14476, equation 13.
    """
    return -((lengths - (limit - buffer)) / buffer).clamp(0, 1)
