"""What is written of completions while they are sampled, a position of all of them at a time.

Whatever a position needs is on the device, the place of the position included, in memory that stays. So nothing here
waits for a GPU, and `fixed_cache.py` lets it replay a whole position as one graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings


@dataclass(frozen=True)
class Cut:
    """What a sampler makes of the logits before it draws, in this order, as transformers does: tokens of the text so
    far, prompt included, get less by `repetition_penalty` (`penalized`); after the temperature some are left out
    (`cut`).

    If it is `counted`, the sampler also reports the log-probabilities of what is left, normalised.
    """

    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    counted: bool = False

    @classmethod
    def of(cls, settings: Settings, counted: bool = False) -> Cut:
        """That of the settings; `counted` where it changes anything."""
        found = cls(settings.top_p, settings.top_k, settings.min_p, settings.repetition_penalty)
        return cls(found.top_p, found.top_k, found.min_p, found.repetition_penalty, counted and found != cls())


WHOLE = Cut()
"""Every token as likely as the model says."""


@dataclass(frozen=True)
class Choice:
    """How a token is chosen: from the softmax of logits / `temperature`, `cut`, or the likeliest one of it."""

    temperature: float
    greedy: bool = False
    cut: Cut = WHOLE


class Chosen(NamedTuple):
    """Tokens [R] and what they were chosen from: log-probabilities and probabilities [D, V] before any cut, and the
    log-probabilities [D, V] after it, normalised where these are reported.

    `at` [R] says which of the D each token was chosen from; None: each has its own.
    """

    tokens: Tensor
    logprobs: Tensor
    probabilities: Tensor
    left: Tensor
    at: Tensor | None

    def each(self, values: Tensor) -> Tensor:
        """The `values` [D, …] of each token: [R, …]."""
        return values if self.at is None else values[self.at]


class Slate:
    """N completions of at most L tokens; the fields are those of `Batch` with their names. Places not written are 0."""

    def __init__(
        self, shape: tuple[int, int, int], ends: frozenset[int], choice: Choice, device: torch.device,
        vocabulary: int = 0,
    ) -> None:  # fmt: skip
        """For `shape` = (N, L, candidates kept); `ends` are the tokens that end a completion. A penalty of what was
        said before needs the `vocabulary`."""
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
        self.sampling_logprobs = torch.zeros_like(self.old_logprobs) if choice.cut.counted else None
        self.sampling_top_logprobs = torch.zeros_like(self.top_logprobs) if choice.cut.counted else None
        self.said: Tensor | None = None
        """bool [N, V + 1], True on the tokens of the text so far; the last column means nothing."""
        if choice.cut.repetition_penalty != 1:
            self.said = torch.zeros(rows, vocabulary + 1, dtype=torch.bool, device=device)
        self.shape, self.kind = shape, (shape, ends, choice)
        self._choice, self._ends = choice, torch.tensor(sorted(ends), dtype=torch.long, device=device)
        self.draws = torch.zeros_like(self.old_logprobs)
        self._place = torch.zeros(1, dtype=torch.long, device=device)
        self.prompted: Tensor | None = None
        """`said` as it was when it began."""

    def written(self) -> dict[str, Any]:
        """All that is written, by its name in `Batch`: [N], [N, L] or [N, L, K]."""
        reported = {
            "sampling_logprobs": self.sampling_logprobs, "sampling_top_logprobs": self.sampling_top_logprobs
        }  # fmt: skip
        return {name: tensor for name, tensor in reported.items() if tensor is not None} | {
            "ids": self.ids, "lengths": self.lengths, "old_logprobs": self.old_logprobs, "entropy": self.entropy,
            "top_ids": self.top_ids, "top_logprobs": self.top_logprobs, "truncated": self.truncated,
            "environment": self.environment,
        }  # fmt: skip

    def begin(self, draws: Tensor, said: Tensor | None = None) -> Slate:
        """Begin anew, with the numbers in [0, 1) that choose the tokens, float32 [N, L], and the tokens of the prompts
        as `said` has them, needed for a penalty alone."""
        for tensor in self.written().values():
            tensor.zero_()
        self.truncated.fill_(True)
        self._place.zero_()
        self.draws.copy_(draws)
        self.prompted = said
        if self.said is not None and said is not None:
            self.said.copy_(said)
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
        logits = logits.float()
        logprobs = (logits / how.temperature).log_softmax(-1)
        probabilities, left = logprobs.exp(), logprobs
        if self.said is not None:
            said = self.said[self._each(rows, len(logits), at), :-1]
            left = (penalized(logits, said, how.cut.repetition_penalty) / how.temperature).log_softmax(-1)
        likeliest = left.argmax(-1)
        left = cut(left, how.cut)
        if how.cut.counted:
            left = left.log_softmax(-1)
        found = Chosen(likeliest, logprobs, probabilities, left, at)
        if how.greedy:
            return Chosen(found.each(likeliest), *found[1:])
        cumulative = found.each((probabilities if left is logprobs else left.exp()).cumsum(-1))
        wanted = self.draws[rows, self._place][:, None] * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).clamp(max=logprobs.shape[-1] - 1)
        return Chosen(tokens, *found[1:])

    @staticmethod
    def _each(rows: Tensor, count: int, at: Tensor | None) -> Tensor:
        """One of `rows` [R] for each of `count` beginnings, which have the same text so far; a beginning without any
        gets some row."""
        return rows if at is None else rows.new_zeros(count).scatter_(0, at, rows)

    def write(self, rows: Tensor, chosen: Chosen) -> Tensor:
        """Write what was chosen for `rows`, except for those that are over; returns which tokens end one, bool [R]."""
        tokens, logprobs, probabilities, left, own = chosen
        at, going = (rows, self._place), self.truncated[rows]
        top = logprobs.topk(self.shape[2], dim=-1)
        self.ids[at] = tokens * going
        from_which = torch.arange(len(tokens), device=tokens.device) if own is None else own
        self.old_logprobs[at] = torch.where(going, logprobs[from_which, tokens], 0.0)
        entropy = chosen.each(-(probabilities * logprobs.clamp(min=-1e4)).sum(-1))
        self.entropy[at] = torch.where(going, entropy, 0.0)
        self.top_ids[at] = chosen.each(top.indices) * going[:, None]
        self.top_logprobs[at] = torch.where(going[:, None], chosen.each(top.values), 0.0)
        if self.sampling_logprobs is not None and self.sampling_top_logprobs is not None:
            self.sampling_logprobs[at] = torch.where(going, left[from_which, tokens], 0.0)
            reported = chosen.each(left.gather(-1, top.indices))
            self.sampling_top_logprobs[at] = torch.where(going[:, None], reported, 0.0)
        if self.said is not None:
            self.said[rows, tokens] = torch.ones_like(going)
        self.lengths[rows] += going
        return (tokens[:, None] == self._ends).any(-1) & ~self.environment[at]

    def close(self, rows: Tensor, over: Tensor) -> None:
        """Of `rows`, those are `over`, bool [R]; whatever comes next comes at the next place."""
        self.truncated[rows] &= ~over
        self._place.add_(1)


def said_by(ids: Tensor, mask: Tensor, vocabulary: int) -> Tensor:
    """Which tokens are among `ids` [N, P] where `mask` [N, P] is 1: bool [N, V + 1], the last column for all others."""
    said = torch.zeros(len(ids), vocabulary + 1, dtype=torch.bool, device=ids.device)
    return said.scatter_(1, ids.masked_fill(mask == 0, vocabulary), True)


def penalized(logits: Tensor, said: Tensor, penalty: float) -> Tensor:
    """`logits` [R, V] with those of tokens that were `said`, bool [R, V], divided by the penalty, or multiplied where
    they are negative (Keskar et al. 2019, arXiv:1909.05858, as transformers has it)."""
    return torch.where(said, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def cut(logprobs: Tensor, how: Cut) -> Tensor:
    """Log-probabilities [R, V] with −inf for the tokens that are not sampled; not normalised anew.

    First the `top_k` likeliest stay (0: all), then of these, normalised, the fewest that reach `top_p` (Holtzman et al.
    2019, arXiv:1904.09751), then those that have at least `min_p` times the probability of the likeliest (Nguyen et al.
    2024, arXiv:2407.01082), as transformers orders its warpers.
    """
    if 0 < how.top_k < logprobs.shape[-1]:
        least = logprobs.topk(how.top_k, dim=-1).values[:, -1:]
        logprobs = logprobs.masked_fill(logprobs < least, -torch.inf)
    if how.top_p < 1:
        ordered, places = logprobs.softmax(-1).sort(dim=-1)
        unlikely = ordered.cumsum(-1) <= 1 - how.top_p
        unlikely[:, -1] = False
        logprobs = logprobs.masked_fill(unlikely.scatter(-1, places, unlikely), -torch.inf)
    if how.min_p > 0:
        shares = logprobs.softmax(-1)
        logprobs = logprobs.masked_fill(shares < how.min_p * shares.amax(-1, keepdim=True), -torch.inf)
    return logprobs
