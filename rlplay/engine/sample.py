"""Phase 1, sampling: one token of every completion at a time, each position an occasion to look or to stop.

Randomness is a function of (seed, update) alone: the prompts drawn and the uniform number behind every token. So an
update sampled again after a rewind is the same update, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from rlplay.engine import ranks
from rlplay.engine.agreement import agree
from rlplay.engine.batch import Batch, Prompts, sampled_record
from rlplay.engine.decode import decoder
from rlplay.engine.episodes import Episodes
from rlplay.engine.merge import whole
from rlplay.engine.model import LanguageModel
from rlplay.tasks.task import Environment, Example
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Array, Sampled

_DROP_SHARE = 8

ROLLOUTS, VINES, TAILS, ESTIMATES = 1, 3, 11, 12
"""Streams of random numbers of an update: for the completions it learns from, for what they are compared with, and for
what somebody asks about in between."""
_ENVIRONMENT = 100
"""Added to a stream: the environment's share of it."""

Moment = TypeVar("Moment")


@dataclass(frozen=True)
class Sampling:
    """A moment while sampling; `record()` builds what has been sampled so far, only if somebody looks."""

    record: Callable[[], Sampled]


def draw_prompts(examples: list[Example], count: int, seed: int, update: int, skip: int = 0) -> list[Example]:
    """`count` examples for this update, after `skip` others, without repetition while there are enough."""
    order = np.random.default_rng([seed, update]).permutation(len(examples))
    return [examples[order[i % len(order)]] for i in range(skip, skip + count)]


def uniforms(seed: int, update: int, rows: int, positions: int, again: int = 0, stream: int = ROLLOUTS) -> Tensor:
    """The random numbers in [0, 1) that choose the tokens of this update: float32 [rows, positions], on the CPU.

    `again` counts further samplings of the same update, which need numbers of their own.
    """
    generator = np.random.default_rng([seed, update, stream, again])
    return torch.from_numpy(generator.random((rows, positions), dtype=np.float32))


def unseen(sampling: Generator[Sampling, None, Batch], moment: Moment) -> Generator[Moment, None, Batch]:
    """The same sampling with `moment` in place of every `Sampling`: occasions to stop, nothing new to see."""
    while True:
        try:
            next(sampling)
        except StopIteration as finished:
            batch: Batch = finished.value
            return batch
        yield moment


@torch.no_grad()
def sample(
    lm: LanguageModel, prompts: Prompts, *, generations: int, length: int, temperature: float, keep: int,
    seed: int, update: int, again: int = 0, stream: int = ROLLOUTS, greedy: bool = False,
    environment: Environment | Tools | None = None, top_p: float = 1.0, top_k: int = 0,
) -> Generator[Sampling, None, Batch]:  # fmt: skip
    """Sample `generations` completions of each prompt, at most `length` tokens; returns the Batch when done.

    Tokens are drawn from the softmax of logits / temperature, in float32 (inverse of the cumulative distribution), cut
    to the `top_k` likeliest tokens (0: all) and to the likeliest ones that reach the probability `top_p`; if `greedy`,
    the likeliest token is taken instead. Log-probabilities, entropies and candidates are those of the softmax before
    this cut, as in TRL, so that the ratio of the first optimizer step is 1. `keep`
    candidates are recorded at each position. An `environment` answers whenever the model ends a turn; its words, and
    those of the template around them, take places of the completion but are not sampled. Several processes sample a
    share each, and look at that until they are done.

    Raises Halt if the environment fails.
    """
    group = torch.arange(len(prompts.ids), device=lm.device).repeat_interleave(generations)
    draws = uniforms(seed, update, len(group), length, again, stream).to(lm.device)
    chances = uniforms(seed, update, len(group), length, again, stream + _ENVIRONMENT)
    rows = ranks.mine(torch.arange(len(group), device=lm.device))
    while True:
        empty = _empty(prompts, group[rows], length, keep, temperature, update, lm.device)
        own = _sampled(lm, empty, draws[rows], chances[rows.cpu()].numpy(), greedy, environment, top_p, top_k)
        idle = Sampling(lambda empty=empty: sampled_record(lm, empty, False, 0))  # type: ignore[misc]
        share = yield from ranks.in_step(own, idle)
        batch = whole(ranks.each(lambda share=share: share))  # type: ignore[misc]
        if all(ranks.each(lambda batch=batch: agree(lm, batch))):  # type: ignore[misc]
            return batch


@torch.no_grad()
def _sampled(
    lm: LanguageModel, batch: Batch, draws: Tensor, chances: Array, greedy: bool,
    environment: Environment | Tools | None, top_p: float, top_k: int,
) -> Generator[Sampling, None, Batch]:  # fmt: skip
    """Fill the completions of an empty `batch`, tokens by the numbers `draws` [N, L] and the environment `chances`."""
    if not len(batch.group):
        return _trimmed(batch)
    length, keep = batch.ids.shape[1], batch.top_ids.shape[2]
    ends = torch.tensor(sorted(lm.end_ids), device=lm.device, dtype=torch.long)
    growing = decoder(lm, batch.prompts, batch.group, length)
    episodes = None if environment is None else Episodes(lm, environment, batch, chances)
    active = torch.arange(len(batch.group), device=lm.device)  # rows whose caches are kept
    counted = _counted(lm.device)
    for position in range(length):
        logprobs = (growing.logits.float() / batch.temperature).log_softmax(-1)
        tokens = logprobs.argmax(-1) if greedy else _choose(cut(logprobs, top_p, top_k), draws[active, position])
        going = batch.truncated[active]  # a finished row may still be computed until it is dropped
        if episodes is not None:
            tokens = episodes.with_environment(active, tokens, position)
        _write(batch, position, active, going, logprobs, tokens, keep)
        ended = torch.isin(tokens, ends) & ~batch.environment[active, position]
        if episodes is not None:
            ended = episodes.over(active, ended & going)
        batch.truncated[active] = going & ~ended
        yield Sampling(lambda p=position: sampled_record(lm, batch, False, p + 1))  # type: ignore[misc]
        if position + 1 == length:
            break
        if not (position + 1) % counted:
            going = batch.truncated[active]
            finished = len(active) - int(going.sum())
            if finished == len(active):
                break
            if finished * _DROP_SHARE >= len(active):
                kept = going.nonzero().squeeze(-1)
                growing.keep(kept)
                active, tokens = active[kept], tokens[kept]
        growing.step(tokens)
    return _trimmed(batch)


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


def _counted(device: torch.device) -> int:
    """After how many positions the finished rows are counted: a GPU works behind Python, which waits for it there."""
    return 1 if device.type == "cpu" else 8


def _choose(logprobs: Tensor, draws: Tensor) -> Tensor:
    cumulative = logprobs.exp().cumsum(-1)
    wanted = draws[:, None] * cumulative[:, -1:]
    return torch.searchsorted(cumulative, wanted, right=True).squeeze(-1).clamp(max=logprobs.shape[-1] - 1)


def _empty(
    prompts: Prompts, group: Tensor, length: int, keep: int, temperature: float, update: int, device: torch.device
) -> Batch:
    shape = (len(group), length)
    return Batch(
        update=update,
        prompts=prompts,
        group=group,
        ids=torch.zeros(shape, dtype=torch.long, device=device),
        lengths=torch.zeros(len(group), dtype=torch.long, device=device),
        old_logprobs=torch.zeros(shape, device=device),
        entropy=torch.zeros(shape, device=device),
        top_ids=torch.zeros((*shape, keep), dtype=torch.long, device=device),
        top_logprobs=torch.zeros((*shape, keep), device=device),
        truncated=torch.ones(len(group), dtype=torch.bool, device=device),
        environment=torch.zeros(shape, dtype=torch.bool, device=device),
        temperature=temperature,
    )


def _write(
    batch: Batch, position: int, rows: Tensor, going: Tensor, logprobs: Tensor, tokens: Tensor, keep: int
) -> None:
    """Write the tokens of the `rows` that are `going` on, bool [rows]; the others' places stay 0."""
    top = logprobs.topk(keep, dim=-1)
    batch.ids[rows, position] = tokens * going
    batch.old_logprobs[rows, position] = torch.where(going, logprobs.gather(-1, tokens[:, None]).squeeze(-1), 0.0)
    entropy = -(logprobs.exp() * logprobs.clamp(min=-1e4)).sum(-1)
    batch.entropy[rows, position] = torch.where(going, entropy, 0.0)
    batch.top_ids[rows, position] = top.indices * going[:, None]
    batch.top_logprobs[rows, position] = torch.where(going[:, None], top.values, 0.0)
    batch.lengths[rows] += going


def _trimmed(batch: Batch) -> Batch:
    width = max(batch.lengths.tolist(), default=0)
    for name in ("ids", "old_logprobs", "entropy", "top_ids", "top_logprobs", "environment"):
        setattr(batch, name, getattr(batch, name)[:, :width].contiguous())
    return batch
