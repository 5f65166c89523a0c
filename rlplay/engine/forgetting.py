"""What training on one thing does to another: how well the policy still predicts text of its pretraining."""

from __future__ import annotations

import torch

from rlplay.engine.batch import Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import score_tokens
from rlplay.engine.teacher_forcing import written
from rlplay.tasks.task import Example

_LONGEST = 128
"""Tokens that are read of a text."""


@torch.no_grad()
def mean_nll(lm: LanguageModel, examples: list[Example]) -> float:
    """Mean over all tokens of −log p of the `chosen` answers, end tokens included, in nats at temperature 1."""
    texts = [example.chosen or "" for example in examples]
    group = torch.arange(len(texts), device=lm.device)
    batch = written(lm, Prompts.of(lm, examples), group, texts, _LONGEST, update=0)
    logprobs, _ = score_tokens(lm, lm.policy, batch.tokens(), batch.top_ids, batch.temperature)
    return -logprobs[batch.mask].mean().item()
