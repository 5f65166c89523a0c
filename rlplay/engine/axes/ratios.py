"""At which level the ratio of the new policy to the one that sampled is taken."""

from __future__ import annotations

import torch
from torch import Tensor


def log_ratio(name: str, change: Tensor, advantages: Tensor, mask: Tensor, low: float, high: float) -> Tensor:
    """The logarithm of each token's importance weight from `change` = ℓ − ℓ_old, all [N, L]; 0 outside the mask.

    `token` its own change. `sequence` the mean over the completion (GSPO, arXiv:2507.18071, equation 7).
    `sequence_sum` the sum, the log-ratio of the whole completion (RLOO, arXiv:2402.14740).
    `geometric` the mean of changes clipped where they go with the advantage: at `high` for A > 0, at −`low` for
    A < 0 (GMPO, arXiv:2507.20673, equation 4). All but `token` give every token of a completion the same weight.

    Raises KeyError for another name.
    """
    change = change.where(mask, 0.0)
    length = mask.sum(-1, keepdim=True).clamp(min=1)
    return {
        "token": lambda: change,
        "sequence": lambda: (change.sum(-1, keepdim=True) / length).expand_as(change) * mask,
        "sequence_sum": lambda: change.sum(-1, keepdim=True).expand_as(change) * mask,
        "geometric": lambda: (
            (clipped(change, advantages, low, high).sum(-1, keepdim=True) / length).expand_as(change) * mask
        ),
    }[name]()


def clipped(change: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """Log-ratios [N, L] bounded on the side that the advantages [N, L] push to."""
    return torch.where(advantages > 0, change.clamp(max=high), change.clamp(min=-low))
