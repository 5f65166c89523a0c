"""How likely the policy finds whole answers, for losses that weight pairs by it."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine.batch import TokenBatch
from rlplay.engine.log_softmax import widened
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import forward, laid_out
from rlplay.engine.stopwatch import spent_on


@torch.no_grad()
@spent_on("forward")
def answer_weights(lm: LanguageModel, tokens: TokenBatch, logprobs: Tensor, mask: Tensor, temperature: float) -> Tensor:
    """The weight of each answer, [R], of its log-probabilities [R, L] under the policy (Zhou et al. 2024,
    arXiv:2406.11827, equation 2): exp of the mean of ℓ − log Σᵥ p² over its tokens.

    Σᵥ p² is the mean probability of a token that the policy draws itself, so its own answers have weights about 1.
    """
    parts = []
    for chunk in forward(lm, lm.policy, tokens):
        drawn = torch.logsumexp(2 * (widened(chunk.logits) / temperature).log_softmax(-1), -1)
        parts.append((chunk.rows, chunk.spread(drawn)))
    return weights_of(logprobs.detach(), laid_out(parts, logprobs.shape[1]), mask)


def weights_of(logprobs: Tensor, drawn: Tensor, mask: Tensor) -> Tensor:
    """The same of given log Σᵥ p², [R, L]."""
    return (((logprobs - drawn) * mask).sum(-1) / mask.sum(-1).clamp(min=1)).exp()
