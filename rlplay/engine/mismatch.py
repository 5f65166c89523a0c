"""What sampler and trainer say of the same answers, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from rlplay.algorithms import divergences
from rlplay.engine.agreement import precision
from rlplay.engine.batch import Batch
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import token_logprobs
from rlplay.engine.scored_again import scored_again
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device
from rlplay.trace.numbers import compact
from rlplay.trace.records import Notice


def held_against(batch: Batch, state: State) -> None:
    """Put beside what the sampler reported of a batch what the policy makes of it; nothing if they are the same.

    `sampling_logprobs` and `sampling_top_logprobs` are then the sampler's, and the others the policy's, in one more
    pass where the sampler has other weights. With old_logprobs_of=sampler there is no pass: `old_logprobs` are those
    that the sampler reported, and entropy and candidates are its own.
    """
    sampler, settings = state.sampler, state.settings
    if sampler.using is not None:
        batch.version, batch.staleness = sampler.version, sampler.staleness
        batch.discarded = sampler.discarded * settings.num_prompts * settings.num_generations
        if batch.sampling_logprobs is None:
            batch.sampling_logprobs, batch.sampling_top_logprobs = batch.old_logprobs, batch.top_logprobs
    if batch.sampling_logprobs is None:
        return
    batch.from_sampler = settings.old_logprobs_of == "sampler"
    lm = state.sampling_lm
    if batch.from_sampler or lm is not state.lm:
        batch.sampler_off = _off(lm, batch)
    if batch.from_sampler:
        batch.old_logprobs = batch.sampling_logprobs
    elif lm is not state.lm:
        _score_again(batch, state.lm)


@spent_on("forward")
def _off(lm: LanguageModel, batch: Batch) -> float:
    """How far from 1 a ratio is between what sampling gave the tokens of one answer, before any cut, and a pass of the
    model that sampled it; another answer in each update."""
    row = torch.tensor([batch.update % len(batch.group)])
    tokens = batch.tokens(row)
    with torch.no_grad():
        scored = token_logprobs(lm, lm.policy, tokens, batch.temperature)
    (there,) = to_device([row], scored.device)
    apart = (scored - batch.old_logprobs[there]).exp() - 1
    return float((apart.abs() * batch.mask[there]).max())


@spent_on("forward")
def _score_again(batch: Batch, lm: LanguageModel) -> None:
    """Let log-probabilities and entropy be the policy's; the candidates are those of the sampler, in the policy's
    order."""
    mask = batch.completion_mask
    own, entropy, top, _ = scored_again(lm, batch.tokens(), batch.top_ids, batch.temperature)
    batch.old_logprobs, batch.entropy = own * mask, entropy * mask
    assert batch.sampling_top_logprobs is not None
    ordered = (top * mask[..., None]).sort(dim=-1, descending=True, stable=True)
    batch.top_logprobs, batch.top_ids = ordered.values, batch.top_ids.gather(-1, ordered.indices)
    batch.sampling_top_logprobs = batch.sampling_top_logprobs.gather(-1, ordered.indices)


def sampler_guard(batch: Batch, lm: LanguageModel) -> Iterator[Notice]:
    """A sampler `lm` whose own pass gives a token another probability than the one it was sampled with is a bug,
    however far it is meant to be from the policy; that is shown."""
    if batch.sampler_off > precision(lm).ratio:
        yield Notice(
            update=batch.update,
            level="warning",
            text=f"the sampler's own pass over an answer of update {batch.update} is off by a factor of "
            f"{compact(1 + batch.sampler_off, 2)}: sampling and scoring disagree, beyond what was asked for",
        )


def mismatch_figures(batch: Batch) -> dict[str, float]:
    """How far the sampler was from the policy: TRL's metrics of that, prime-rl's KL, and how old its weights were.

    `mismatch_kl` is the mean over the sampled tokens of w − log w − 1 with w = policy/sampler, an estimate of
    KL(sampler ‖ policy), as prime-rl's `mismatch_kl` is; tokens that nobody sampled do not count. The policy is the one
    before the update's first step; with old_logprobs_of=sampler as the first pass's steps saw it, which has moved if
    there are several of them.
    """
    found = dict[str, float]()
    if batch.version is not None:
        found |= {"sample/staleness_mean": float(batch.staleness), "sample/dropped_stale_total": float(batch.discarded)}
    if batch.sampling_logprobs is None:
        return found
    mask = batch.known_masks[0]
    trained, sampling = batch.on_host("old_logprobs", "sampling_logprobs")
    if batch.from_sampler:
        if batch.passes is None or batch.passes.first_seen is None:
            return found
        trained = batch.passes.first_seen
    log_ratio = (trained.double() - sampling.double())[mask & ~sampling.isnan()]
    if not len(log_ratio):
        return found
    return found | {
        "sampling/sampling_logp_difference/mean": log_ratio.abs().mean().item(),
        "sampling/sampling_logp_difference/max": log_ratio.abs().max().item(),
        "mismatch_kl": divergences.k3(Tensors, log_ratio).mean().item(),
    }
