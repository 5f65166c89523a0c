"""Phase 1, sampling: one token of every completion at a time, each position an occasion to look or to stop.

Randomness is a function of (seed, update) alone: the prompts drawn and the uniform number behind every token. So an
update sampled again after a rewind is the same update, whatever happened in between.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from rlplay.engine import ranks
from rlplay.engine.agreement import agree
from rlplay.engine.batch import Batch, Prompts, sampled_record
from rlplay.engine.decode import Decoder, decoder
from rlplay.engine.episodes import Episodes
from rlplay.engine.fixed_cache import Fixed
from rlplay.engine.merge import whole
from rlplay.engine.model import LanguageModel
from rlplay.engine.slate import WHOLE, Choice, Chosen, Cut, Slate, said_by
from rlplay.tasks.task import Environment, Example
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Array, Sampled

_COUNTED = 8
"""Positions after which Python waits for a GPU, to see whether all completions are over."""

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
    environment: Environment | Tools | None = None, cut: Cut = WHOLE,
) -> Generator[Sampling, None, Batch]:  # fmt: skip
    """Sample `generations` completions of each prompt, at most `length` tokens; returns the Batch when done.

    `lm` has as its policy the model that samples. Tokens are drawn from the softmax of logits / temperature, in float32
    (inverse of the cumulative distribution), after the `cut`; if `greedy`, the likeliest token is taken instead.
    Log-probabilities, entropies and candidates are those of the softmax before the cut, so that the ratio of the first
    optimizer step is 1; those after it are the batch's `sampling_logprobs` if it is counted. `keep` candidates are
    recorded at each position. An `environment` answers whenever the model ends a turn; its words, and
    those of the template around them, take places of the completion but are not sampled. Several processes sample a
    share each, and look at that until they are done.

    Raises Halt if the environment fails.
    """
    group = torch.arange(len(prompts.ids)).repeat_interleave(generations)
    draws = uniforms(seed, update, len(group), length, again, stream)
    chances = uniforms(seed, update, len(group), length, again, stream + _ENVIRONMENT)
    rows = ranks.mine(torch.arange(len(group)))
    shape, choice = (len(rows), length, keep), Choice(temperature, greedy, cut)
    said = None
    if cut.repetition_penalty != 1:
        mine = group[rows].to(lm.device)
        said = said_by(prompts.ids[mine], prompts.mask[mine], lm.vocabulary)
    while True:
        slate = Slate(shape, lm.end_ids, choice, lm.device, lm.vocabulary).begin(draws[rows], said)
        empty = Batch(
            update=update, prompts=prompts, group=group[rows].to(lm.device), temperature=temperature, **slate.written()
        )
        own = _sampled(lm, empty, slate, chances[rows].numpy(), environment)
        idle = Sampling(lambda empty=empty: sampled_record(lm, empty, False, 0))  # type: ignore[misc]
        share = yield from ranks.in_step(own, idle)
        batch = whole(ranks.each(lambda share=share: share))  # type: ignore[misc]
        if all(ranks.each(lambda batch=batch: agree(lm, batch))):  # type: ignore[misc]
            return batch


@torch.no_grad()
def _sampled(
    lm: LanguageModel, batch: Batch, slate: Slate, chances: Array, environment: Environment | Tools | None
) -> Generator[Sampling, None, Batch]:
    """Fill an empty `batch`, whose tensors are the slate's; the environment takes the numbers `chances` [N, L]."""
    if not len(batch.group):
        return batch
    growing = decoder(lm, batch.prompts, batch.group, slate.shape[1], slate if environment is None else None)
    if isinstance(growing, Fixed) and growing.slate is not None:
        slate = growing.slate
        _show(batch, slate.written())
        positions = _at_once(growing, slate)
    else:
        episodes = None if environment is None else Episodes(lm, environment, batch, chances)
        positions = _one_by_one(growing, slate, episodes)
    for position in positions:
        yield Sampling(lambda p=position: sampled_record(lm, batch, False, p + 1))  # type: ignore[misc]
    width = max(batch.lengths.tolist())
    _show(batch, {name: (x[:, :width] if x.ndim > 1 else x).clone() for name, x in slate.written().items()})
    if isinstance(growing, Fixed):
        growing.close()
    return batch


def _show(batch: Batch, tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        setattr(batch, name, tensor)


def _at_once(growing: Fixed, slate: Slate) -> Iterator[int]:
    """Every position of completions that are all computed to the end, once it is written."""
    last = slate.shape[1] - 1
    for position in range(last):
        growing.position()
        yield position
        if not (position + 1) % _COUNTED and not bool(slate.truncated.any()):
            return
    slate.position(growing.logits, slate.every)
    yield last


def _one_by_one(growing: Decoder, slate: Slate, episodes: Episodes | None) -> Iterator[int]:
    """The same where an environment may speak, or where completions that are over need not be computed."""
    active, counted = slate.every, _counted(slate.ids.device)
    for position in range(slate.shape[1]):
        chosen = slate.choose(growing.logits, active, growing.at)
        if episodes is not None:
            chosen = Chosen(episodes.with_environment(active, chosen.tokens, position), *chosen[1:])
        ended = slate.write(active, chosen)
        if episodes is not None:
            ended = episodes.over(active, ended & slate.truncated[active], position)
        slate.close(active, ended)
        yield position
        if position + 1 == slate.shape[1]:
            return
        tokens = chosen.tokens
        if not (position + 1) % counted:
            kept = slate.truncated[active].nonzero().squeeze(-1)
            if not len(kept):
                return
            if len(kept) < len(active):
                growing.keep(kept)
                active, tokens = active[kept], tokens[kept]
        growing.step(tokens)


def _counted(device: torch.device) -> int:
    """After how many positions the finished rows are counted: a GPU works behind Python, which waits for it there."""
    return 1 if device.type == "cpu" else _COUNTED
