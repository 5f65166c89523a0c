"""Fixed random batches: what both sides are given."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

PAD = END = 2
GENERATIONS, PROMPTS = 4, 3
MAX_LENGTH = 9


@dataclass(frozen=True)
class Fixed:
    """Completions of three prompts, four each, of 1 to 9 tokens, three of them cut; pad is the end token.

    Tensors [N, L] hold noise outside `mask`, so that whoever reads padding shows.
    """

    prompts: list[list[int]]
    completions: list[list[int]]
    mask: Tensor  # bool [N, L]
    truncated: Tensor  # bool [N]
    group: Tensor  # int64 [N]
    rewards: Tensor  # [N, 2], one column per reward function
    logprobs: Tensor
    old: Tensor
    ref: Tensor
    entropy: Tensor
    stream: Tensor  # rewards of tokens
    values: Tensor
    values_now: Tensor
    greedy: Tensor  # [N], the reward of a greedy answer to the same prompt
    holes: Tensor  # bool [N, L], `mask` without some tokens in the middle, as if an environment had written them
    ends: Tensor  # bool [N, L], where steps of the reasoning end
    environment: Tensor  # bool [N, L], tokens that were read and not sampled: none
    sampling: Tensor | None = None  # the log-probabilities of a sampler that is not quite the policy

    @property
    def sampled(self) -> Tensor:
        """bool [N, L], the tokens to learn from."""
        return self.mask & ~self.environment

    @property
    def lengths(self) -> Tensor:
        """int64 [N]."""
        return self.mask.sum(-1)


def fixed(dtype: torch.dtype, seed: int, drift: float = 0.3) -> Fixed:
    """The batch of `seed`; `drift` is the spread of log π − log π_old, wide enough that clips act on both sides.

    All of it is drawn in float32: the same numbers in every precision, and the ones that `verl.npz` holds.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = PROMPTS * GENERATIONS
    lengths = torch.randint(1, MAX_LENGTH + 1, (rows,), generator=generator)
    lengths[0], lengths[1] = MAX_LENGTH, 1
    truncated = torch.zeros(rows, dtype=torch.bool)
    truncated[[0, 5, 10]] = True
    ids = torch.randint(3, 50, (rows, MAX_LENGTH), generator=generator)
    completions = [row[:n].tolist() for row, n in zip(ids, lengths.tolist(), strict=True)]
    for completion, cut in zip(completions, truncated.tolist(), strict=True):
        completion[-1] = completion[-1] if cut else END
    prompt_lengths = torch.randint(1, 6, (PROMPTS,), generator=generator).tolist()
    prompts = [torch.randint(3, 50, (n,), generator=generator).tolist() for n in prompt_lengths]

    def noise(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float32)

    shape = rows, MAX_LENGTH
    logprobs, values = -noise(*shape).abs() - 0.05, noise(*shape)
    position = torch.arange(MAX_LENGTH)
    mask = position < lengths[:, None]
    tensors = {
        "mask": mask,
        "holes": mask & ((noise(*shape) < 0.5) | (position == 0)),
        "truncated": truncated,
        "group": torch.arange(PROMPTS).repeat_interleave(GENERATIONS),
        "rewards": noise(rows, 2),
        "logprobs": logprobs,
        "old": logprobs - drift * noise(*shape),
        "ref": logprobs - 0.4 * noise(*shape),
        "entropy": noise(*shape).abs(),
        "stream": noise(*shape),
        "values": values,
        "values_now": values + 0.3 * noise(*shape),
        "greedy": noise(PROMPTS).repeat_interleave(GENERATIONS),
        "ends": mask & (noise(*shape) < 0),
        "environment": torch.zeros(shape, dtype=torch.bool),
    }
    return Fixed(
        prompts=[prompt for prompt in prompts for _ in range(GENERATIONS)],
        completions=completions,
        **{name: value.to(dtype) if value.is_floating_point() else value for name, value in tensors.items()},
    )


def sampled_elsewhere(batch: Fixed, seed: int) -> Fixed:
    """The batch as another program sampled it: a token's log-probability there differs by 0.3, an answer's by more."""
    noise = torch.randn(*batch.old.shape, generator=torch.Generator().manual_seed(1000 + seed), dtype=torch.float32)
    return replace(batch, sampling=(batch.old.float() - 0.3 * noise).to(batch.old.dtype))
