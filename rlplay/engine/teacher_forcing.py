"""Completions that are given: tokenized if somebody wrote them, and seen by the current policy."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import forward, laid_out


def written(lm: LanguageModel, prompts: Prompts, group: Tensor, texts: list[str], longest: int, update: int) -> Batch:
    """A batch of the completions `texts`, the i-th answering prompt `group[i]`; no policy has seen it yet.

    The tokens are those with which the policy would say a text, its end token included, cut after `longest`. Text and
    prompt are tokenized apart, as they are when the policy samples; TRL tokenizes them together, and keeps what a chat
    template adds after the end token.
    """
    end = sorted(lm.end_ids, key=lambda one: one != lm.tokenizer.eos_token_id)[:1]
    whole = [list(lm.tokenizer(text, add_special_tokens=False)["input_ids"]) + end for text in texts]
    lengths = torch.tensor([min(len(row), longest) for row in whole], device=lm.device)
    width = int(lengths.max())
    ids = torch.tensor([row[:width] + [lm.pad_id] * (width - len(row)) for row in whole], device=lm.device)
    unseen = torch.zeros(len(texts), width, device=lm.device)
    return Batch(
        update=update,
        prompts=prompts,
        group=group,
        ids=ids,
        lengths=lengths,
        old_logprobs=unseen,
        entropy=unseen,
        top_ids=ids[..., None],
        top_logprobs=unseen[..., None],
        truncated=torch.tensor([len(row) > longest for row in whole], device=lm.device),
        environment=torch.zeros_like(ids, dtype=torch.bool),
        temperature=1.0,
    )


@torch.no_grad()
def observed(lm: LanguageModel, batch: Batch, keep: int) -> Batch:
    """The same completions with what the current policy makes of them at temperature 1, whoever wrote them.

    That is `old_logprobs`, `entropy` and the `keep` likeliest candidates at each position.
    """
    width = batch.ids.shape[1]
    own, entropy, top_ids, top_logprobs = [], [], [], []
    for chunk in forward(lm, lm.policy, batch.tokens()):
        logprobs = chunk.logits.float().log_softmax(-1)
        top = logprobs.topk(keep, dim=-1)
        own.append((chunk.rows, chunk.logprobs(batch.ids[chunk.rows, : chunk.width], 1.0)))
        entropy.append((chunk.rows, chunk.spread(-(logprobs.exp() * logprobs.clamp(min=-1e4)).sum(-1))))
        top_ids.append((chunk.rows, chunk.spread(top.indices)))
        top_logprobs.append((chunk.rows, chunk.spread(top.values)))
    return replace(
        batch,
        old_logprobs=laid_out(own, width),
        entropy=laid_out(entropy, width),
        top_ids=laid_out(top_ids, width),
        top_logprobs=laid_out(top_logprobs, width),
        temperature=1.0,
    )
