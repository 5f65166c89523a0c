"""What is written of completions while they are sampled, a position of all of them at a time.

Whatever a position needs is on the device, the place of the position included, in memory that stays. So nothing here
waits for a GPU, and `fixed_cache.py` lets it replay a whole position as one graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True)
class Choice:
    """How a token is chosen: from the softmax of logits / `temperature`, cut as in `cut`, or the likeliest one."""

    temperature: float
    greedy: bool = False
    top_p: float = 1.0
    top_k: int = 0


class Chosen(NamedTuple):
    """Tokens [R] and what they were chosen from: log-probabilities and probabilities [D, V], before any cut.

    `at` [R] says which of the D each token was chosen from; None: each has its own.
    """

    tokens: Tensor
    logprobs: Tensor
    probabilities: Tensor
    at: Tensor | None

    def each(self, values: Tensor) -> Tensor:
        """The `values` [D, …] of each token: [R, …]."""
        return values if self.at is None else values[self.at]


class Slate:
    """N completions of at most L tokens; the fields are those of `Batch` with their names. Places not written are 0."""

    def __init__(self, shape: tuple[int, int, int], ends: frozenset[int], choice: Choice, device: torch.device) -> None:
        """For `shape` = (N, L, candidates kept); `ends` are the tokens that end a completion."""
        rows, length, keep = shape
        self.ids = torch.zeros(rows, length, dtype=torch.long, device=device)
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.old_logprobs = torch.zeros(rows, length, device=device)
        self.entropy = torch.zeros_like(self.old_logprobs)
        self.top_ids = torch.zeros(rows, length, keep, dtype=torch.long, device=device)
        self.top_logprobs = torch.zeros(rows, length, keep, device=device)
        self.truncated = torch.ones(rows, dtype=torch.bool, device=device)
        self.environment = torch.zeros(rows, length, dtype=torch.bool, device=device)
        self.every = torch.arange(rows, device=device)
        self.shape, self.kind = shape, (shape, ends, choice)
        self._choice, self._ends = choice, torch.tensor(sorted(ends), dtype=torch.long, device=device)
        self.draws = torch.zeros_like(self.old_logprobs)
        self._place = torch.zeros(1, dtype=torch.long, device=device)

    def written(self) -> dict[str, Any]:
        """All that is written, by its name in `Batch`: [N], [N, L] or [N, L, K]."""
        return {
            "ids": self.ids, "lengths": self.lengths, "old_logprobs": self.old_logprobs, "entropy": self.entropy,
            "top_ids": self.top_ids, "top_logprobs": self.top_logprobs, "truncated": self.truncated,
            "environment": self.environment,
        }  # fmt: skip

    def begin(self, draws: Tensor) -> Slate:
        """Begin anew, with the numbers in [0, 1) that choose the tokens: float32 [N, L]."""
        for tensor in self.written().values():
            tensor.zero_()
        self.truncated.fill_(True)
        self._place.zero_()
        self.draws.copy_(draws)
        return self

    def position(self, logits: Tensor, rows: Tensor) -> Tensor:
        """Choose and write the next token of the completions `rows` [R] by `logits` [R, V]; returns the tokens [R]."""
        chosen = self.choose(logits, rows)
        self.close(rows, self.write(rows, chosen))
        return chosen.tokens

    def choose(self, logits: Tensor, rows: Tensor, at: Tensor | None = None) -> Chosen:
        """The next token of each of the completions `rows`, by the inverse of the cumulative distribution.

        The `logits` [D, V] are those of distinct beginnings; `at` [R] says which one each completion has.
        """
        how = self._choice
        logprobs = (logits.float() / how.temperature).log_softmax(-1)
        probabilities = logprobs.exp()
        found = Chosen(logprobs.argmax(-1), logprobs, probabilities, at)
        if how.greedy:
            return Chosen(found.each(found.tokens), *found[1:])
        left = cut(logprobs, how.top_p, how.top_k)
        cumulative = found.each((probabilities if left is logprobs else left.exp()).cumsum(-1))
        wanted = self.draws[rows, self._place][:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).clamp(max=logprobs.shape[-1] - 1)
        return Chosen(tokens, *found[1:])

    def write(self, rows: Tensor, chosen: Chosen) -> Tensor:
        """Write what was chosen for `rows`, except for those that are over; returns which tokens end one, bool [R]."""
        tokens, logprobs, probabilities, own = chosen
        at, going = (rows, self._place), self.truncated[rows]
        top = logprobs.topk(self.shape[2], dim=-1)
        self.ids[at] = tokens * going
        picked = logprobs[torch.arange(len(tokens), device=tokens.device) if own is None else own, tokens]
        self.old_logprobs[at] = torch.where(going, picked, 0.0)
        entropy = chosen.each(-(probabilities * logprobs.clamp(min=-1e4)).sum(-1))
        self.entropy[at] = torch.where(going, entropy, 0.0)
        self.top_ids[at] = chosen.each(top.indices) * going[:, None]
        self.top_logprobs[at] = torch.where(going[:, None], chosen.each(top.values), 0.0)
        self.lengths[rows] += going
        return (tokens[:, None] == self._ends).any(-1) & ~self.environment[at]

    def close(self, rows: Tensor, over: Tensor) -> None:
        """Of `rows`, those are `over`, bool [R]; whatever comes next comes at the next place."""
        self.truncated[rows] &= ~over
        self._place.add_(1)


def cut(logprobs: Tensor, top_p: float, top_k: int) -> Tensor:
    """Log-probabilities [R, V] with −inf for the tokens that are not sampled; not normalised anew.

    First the `top_k` likeliest stay (0: all), then of these, normalised, the fewest that reach `top_p` (Holtzman et al.
    2019, arXiv:1904.09751), as transformers orders its warpers.
    """
    if 0 < top_k < logprobs.shape[-1]:
        least = logprobs.topk(top_k, dim=-1).values[:, -1:]
        logprobs = logprobs.masked_fill(logprobs < least, -torch.inf)
    if top_p < 1:
        ordered, places = logprobs.softmax(-1).sort(dim=-1)
        unlikely = ordered.cumsum(-1) <= 1 - top_p
        unlikely[:, -1] = False
        logprobs = logprobs.masked_fill(unlikely.scatter(-1, places, unlikely), -torch.inf)
    return logprobs
