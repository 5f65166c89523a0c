"""Fixed pairs of completions with the logits of a policy and of a reference."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

PAIRS, VOCABULARY, PAD = 5, 11, 0


@dataclass(frozen=True)
class Pairs:
    """Five prompts, each with a chosen and a rejected completion: rows [chosen…, rejected…], padded on the right.

    ids, mask (True on the completion), attention [2P, W]; logits, ref_logits [2P, W, V]; the *mismatched* ones are of
    the same completions after other prompts. `scores` [2P] are a reward model's, `margin` [P].
    """

    ids: Tensor
    mask: Tensor
    attention: Tensor
    logits: Tensor
    ref_logits: Tensor
    mismatched: Tensor
    ref_mismatched: Tensor
    scores: Tensor
    margin: Tensor


def pairs(dtype: torch.dtype, seed: int) -> Pairs:
    """The pairs of `seed`; the policy prefers the rejected completion about as often as the chosen one.

    All of it is drawn in float32: the same numbers in every precision.
    """
    generator = torch.Generator().manual_seed(seed)
    prompt = torch.randint(1, 4, (PAIRS, 1), generator=generator).repeat(2, 1)
    end = prompt + torch.randint(1, 6, (2 * PAIRS, 1), generator=generator)
    position = torch.arange(int(end.max()))
    ids = torch.randint(1, VOCABULARY, (2 * PAIRS, len(position)), generator=generator)

    def noise(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float32)

    shape = *ids.shape, VOCABULARY
    logits, mismatched = noise(*shape), [noise(*shape), noise(*shape)]
    tensors = {
        "ids": torch.where(position < end, ids, PAD),
        "mask": (position >= prompt) & (position < end),
        "attention": (position < end).long(),
        "logits": logits,
        "ref_logits": logits + 0.7 * noise(*shape),
        "mismatched": mismatched[seed % 2],  # so that KTO's z is positive for one seed and cut off at 0 for the next
        "ref_mismatched": mismatched[1 - seed % 2],
        "scores": noise(2 * PAIRS),
        "margin": noise(PAIRS).abs(),
    }
    return Pairs(**{name: value.to(dtype) if value.is_floating_point() else value for name, value in tensors.items()})
