"""Which tokens the loss keeps."""

from __future__ import annotations

import torch
from torch import Tensor


def top_entropy(entropy: Tensor, mask: Tensor, share: float) -> Tensor:
    """The `share` of the sampled tokens at which the policy was most undecided: bool [R, L].

    A token counts if its entropy [R, L] when sampled reaches the (1 − share) quantile over the mask (Wang et al.
    2025, arXiv:2506.01939).
    """
    if share >= 1 or not bool(mask.any()):
        return mask
    return mask & (entropy >= torch.quantile(entropy[mask], 1 - share))
