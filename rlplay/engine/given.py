"""Completions that somebody else wrote, as a batch: tokenized, and seen by the current policy."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts, Tokens
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import forward, laid_out


@dataclass(frozen=True)
class Written:
    """The tokens of a completion, its end token included unless it was `cut`."""

    ids: list[int]
    cut: bool


def written(lm: LanguageModel, text: str, longest: int) -> Written:
    """The tokens with which the policy would say `text` after a prompt, cut after `longest`.

    Text and prompt are tokenized apart, as they are when the policy samples; TRL tokenizes them together, and keeps
    what a chat template adds after the end token.
    """
    ids = list(lm.tokenizer(text, add_special_tokens=False)["input_ids"])
    ids += sorted(lm.end_ids, key=lambda end: end != lm.tokenizer.eos_token_id)[:1]
    return Written(ids[:longest], len(ids) > longest)


@torch.no_grad()
def observed(
    lm: LanguageModel, prompts: Prompts, group: Tensor, completions: list[Written], *, update: int, keep: int
) -> Batch:
    """A batch of `completions`, the i-th answering prompt `group[i]`, with what the policy makes of them.

    `old_logprobs`, `entropy` and the `keep` likeliest candidates are the current policy's, at temperature 1.
    """
    lengths = torch.tensor([len(completion.ids) for completion in completions], device=lm.device)
    width = int(lengths.max())
    rows = [completion.ids + [lm.pad_id] * (width - len(completion.ids)) for completion in completions]
    ids = torch.tensor(rows, device=lm.device)
    own, entropy, top_ids, top_logprobs = [], [], [], []
    for chunk in forward(lm, lm.policy, Tokens(prompts, group, ids, lengths)):
        logprobs = chunk.logits.float().log_softmax(-1)
        top = logprobs.topk(keep, dim=-1)
        here = ids[chunk.rows, : logprobs.shape[1], None]
        own.append((chunk.rows, logprobs.gather(-1, here).squeeze(-1)))
        entropy.append((chunk.rows, -(logprobs.exp() * logprobs.clamp(min=-1e4)).sum(-1)))
        top_ids.append((chunk.rows, top.indices))
        top_logprobs.append((chunk.rows, top.values))
    return Batch(
        update=update,
        prompts=prompts,
        group=group,
        ids=ids,
        lengths=lengths,
        old_logprobs=laid_out(own, width),
        entropy=laid_out(entropy, width),
        top_ids=laid_out(top_ids, width),
        top_logprobs=laid_out(top_logprobs, width),
        truncated=torch.tensor([completion.cut for completion in completions], device=lm.device),
        environment=torch.zeros_like(ids, dtype=torch.bool),
        temperature=1.0,
    )
