"""How token losses become one number: a weight per token, so that loss = Σ weight · token loss."""

from __future__ import annotations

import torch
from torch import Tensor


def weights(name: str, mask: Tensor, max_length: int) -> Tensor:
    """The weight of every token's loss, [N, L] in torch's default precision, 0 outside the mask.

    `seq_mean_token_mean` 1/(N·n_i): every completion counts alike, long ones' tokens less (GRPO).
    `token_mean` 1/Σn: every token counts alike (DAPO, arXiv:2503.14476).
    `constant` 1/(N·L_max): as Dr. GRPO (arXiv:2503.20783), length biases nothing.
    `seq_mean_token_sum` 1/N: a completion counts with all its tokens (REINFORCE).

    Raises KeyError for another name.
    """
    rows = mask.shape[0]
    lengths = mask.sum(-1, keepdim=True)
    one = mask.to(torch.get_default_dtype())
    return {
        "seq_mean_token_mean": lambda: one / (rows * lengths.clamp(min=1)),
        "token_mean": lambda: one / lengths.sum().clamp(min=1),
        "constant": lambda: one / (rows * max_length),
        "seq_mean_token_sum": lambda: one / rows,
    }[name]()
