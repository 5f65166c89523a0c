"""Which tokens of an optimizer step stand out by the covariance of their advantage and log-probability.

Clip-Cov leaves some of them out, KL-Cov holds the foremost (Cui et al. 2025, arXiv:2505.22617). Both compare all tokens
of the step, and so are decided before it is backpropagated in parts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms import masks
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch
from rlplay.engine.passes import token_logprobs
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import Tensors
from rlplay.engine.token_shares import Share
from rlplay.trace.records import DRAWN


def by_covariance(batch: Batch, rows: Tensor, share: Share, state: State) -> Share:
    """What the tokens of the completions `rows`, a whole optimizer step's, count for once some are left out or held.

    A pass without gradients reads them, unless the policy still is the one that sampled them.
    """
    if not state.settings.reads_covariance:
        return share
    assert batch.passes is not None
    place = (batch.passes.seed, batch.update, len(batch.step_metrics))
    return chosen(batch, rows, share, state.settings, _logprobs(batch, rows, state), place)


def chosen(
    batch: Batch, rows: Tensor, share: Share, settings: Settings, logprobs: Tensor, place: tuple[int, int, int]
) -> Share:
    """The same for log-probabilities [R, L] of the policy, on the CPU; `place` is the run's seed, the update and the
    step, on which alone a random choice depends."""
    mask = share.weights > 0
    advantages, old = (values[rows] for values in batch.on_host("advantages", "old_logprobs"))
    covariance = masks.covariance(Tensors(logprobs), advantages, logprobs, mask)
    if settings.clip_cov_ratio:
        ratio, (low, high) = torch.where(mask, logprobs - old, 0.0).exp(), settings.clip_range
        known = {"ratio": ratio, "advantages": advantages, "epsilon": low, "epsilon_high": high}
        clipped = call_choice(settings.surrogate_row.gradient_zero, Tensors(ratio), known, settings) != 0
        between = (covariance > settings.clip_cov_lb) & (covariance < settings.clip_cov_ub) & mask & ~clipped
        drawn = _drawn(between, _count(mask, settings.clip_cov_ratio), place)
        left_out = torch.where(drawn & (share.left_out == 0), DRAWN, share.left_out).to(torch.uint8)
        share = replace(share, keep=torch.where(drawn, 0.0, share.keep), left_out=left_out)
    if settings.kl_cov_ratio < 1:
        share = replace(share, held=_foremost(covariance, mask, _count(mask, settings.kl_cov_ratio)))
    return share


def _count(mask: Tensor, ratio: float) -> int:
    return max(1, int(ratio * int(mask.sum())))


def _drawn(between: Tensor, count: int, place: tuple[int, int, int]) -> Tensor:
    """`count` of the tokens at which `between` holds, by chance; all of them if there are no more: bool [R, L]."""
    candidates = between.flatten().nonzero().flatten()
    seed, update, step = place
    order = torch.from_numpy(np.random.default_rng([seed, update, 9, step]).permutation(len(candidates)))
    found = torch.zeros(between.numel(), dtype=torch.bool)
    found[candidates[order[:count]]] = True
    return found.view_as(between)


def _foremost(covariance: Tensor, mask: Tensor, count: int) -> Tensor:
    """The `count` tokens of the mask with the largest covariance, of equal ones the earlier: bool [R, L]."""
    order = covariance.where(mask, -torch.inf).flatten().argsort(descending=True, stable=True)
    found = torch.zeros(mask.numel(), dtype=torch.bool)
    found[order[:count]] = True
    return found.view_as(mask) & mask


@torch.no_grad()
@spent_on("forward")
def _logprobs(batch: Batch, rows: Tensor, state: State) -> Tensor:
    if not (batch.step_metrics or batch.from_sampler):
        return batch.on_host("old_logprobs")[0][rows]
    return token_logprobs(state.lm, state.lm.policy, batch.tokens(rows), batch.temperature).cpu()
