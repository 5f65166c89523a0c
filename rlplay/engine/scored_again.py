"""Everything that sampling says of a token, said by a model of completions that are there already."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine import ranks
from rlplay.engine.batch import TokenBatch
from rlplay.engine.log_softmax import widened
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import forward, laid_out
from rlplay.engine.transfer import to_device


@torch.no_grad()
def scored_again(
    lm: LanguageModel, tokens: TokenBatch, candidates: Tensor | int, temperature: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The policy's log-probabilities and entropy [R, L], then log-probabilities and ids [R, L, K] of the `candidates`.

    A number of candidates means the policy's own, the likeliest first.
    """
    width = tokens.ids.shape[1]

    @torch.no_grad()
    def scored(rows: Tensor) -> list[Tensor]:
        some = tokens if len(rows) == len(tokens.ids) else tokens.select(rows)
        given = candidates if isinstance(candidates, int) else candidates[to_device([rows], candidates.device)[0]]
        parts: list[list[tuple[Tensor, Tensor]]] = [[], [], [], []]
        for chunk in forward(lm, lm.policy, some):
            whole = (widened(chunk.logits) / temperature).log_softmax(-1)
            here = (chunk.rows, slice(chunk.width))
            top = chunk.spread(whole.topk(given, dim=-1).indices) if isinstance(given, int) else given[here]
            entropy = chunk.spread(-(whole.exp() * whole.clamp(min=-1e4)).sum(-1))
            found = (chunk.logprobs(some.ids[here], temperature), entropy, chunk.logprobs(top, temperature), top)
            for kept, values in zip(parts, found, strict=True):
                kept.append((chunk.rows, values))
        return [laid_out(each, width) for each in parts]

    own, entropy, top_logprobs, top_ids = ranks.by_rows(len(tokens.ids), scored)
    return own, entropy, top_logprobs, top_ids
