"""How a model can be run so that every sequence gets the numbers it has alone: found out, never assumed.

Padding, shared caches and caches that grow are where implementations of models differ. `settle` compares the fast ways
with each sequence alone when a model is loaded; `agree` compares sampling with scoring as soon as answers are longer
than any that were compared before, such as those that leave a sliding window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, get_args

import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts, TokenBatch
from rlplay.engine.checkpointing import layers_of
from rlplay.engine.decode import Cached
from rlplay.engine.decoder_choice import choice, differs, raised, recomputes
from rlplay.engine.fixed_cache import Fixed
from rlplay.engine.model import Kind, LanguageModel
from rlplay.engine.passes import logprobs_of, token_logprobs
from rlplay.trace.numbers import compact

Found = TypeVar("Found")


@dataclass(frozen=True)
class Precision:
    """By how much two right ways may differ on a small batch: `rounding` nats, and a share of the largest `gradient`.

    A model whose own rounding is larger may differ by `noise` times that. Sampling and scoring that differ by `mistake`
    nats are not both right. Before the first optimizer step a `ratio` is no further from 1.
    """

    rounding: float
    gradient: float
    noise: float
    mistake: float
    ratio: float


_PRECISIONS = {
    torch.float32: Precision(rounding=1e-4, gradient=1e-3, noise=10, mistake=1e-2, ratio=1e-4),
    # Measured: right ways differ by up to 0.12 nats (the bundled model, whose logits are large), 1.5 % of a gradient.
    torch.bfloat16: Precision(rounding=0.05, gradient=0.05, noise=2, mistake=1.0, ratio=0.5),
}


def precision(lm: LanguageModel) -> Precision:
    """What can be expected of the model's weights, be they float32 or bfloat16."""
    return _PRECISIONS[torch.bfloat16 if rounded(lm) else torch.float32]


def rounded(lm: LanguageModel) -> bool:
    """Whether weights are in bfloat16, so that sampling and scoring give a token other log-probabilities."""
    return any(p.dtype == torch.bfloat16 for p in lm.policy.parameters())


_GROWTH = 1.25
"""Answers longer than this many times those compared before are compared again."""

_UNSUITED = (AttributeError, TypeError, RuntimeError, ValueError, NotImplementedError, IndexError, KeyError)
"""What a model raises in a way of being run that it does not know."""


def settle(lm: LanguageModel) -> None:
    """Choose `lm.passes` and `lm.cached`: the fastest that give a small batch the numbers of each sequence alone.

    The batch has several chunks, prompts of different lengths, completions of different lengths in mixed order, and
    gradients are compared, too. Raises ValueError, one line, if the model cannot be run or is not causal.
    """
    tokens, name = _small_batch(lm), type(lm.policy).__name__
    try:
        alone = _alone(lm, tokens)
        with _run_as(lm, "by_length"):
            exact = _with_gradient(lm, tokens)
    except _UNSUITED as error:
        what = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"{name} cannot be run ({what}); choose a causal language model of transformers") from error
    noise, expected = _apart(exact[0][:: len(tokens.group) // 3], alone), precision(lm)
    if noise > expected.mistake:
        raise ValueError(
            f"{name} is not causal: what follows a token changes its probability; choose a causal language model, "
            "which reads from left to right"
        )
    tolerance = max(expected.rounding, expected.noise * noise)
    working = [kind for kind in get_args(Kind) if kind == "by_length" or _works(lm, kind, tokens, exact, tolerance)]
    lm.passes, lm.otherwise = working[0], next(kind for kind in working if kind != "tree")
    lm.cacheless = next(
        (kind for kind in working if kind != "shared" and _again(lm, kind, tokens, exact, tolerance)), None
    )
    growing = _why_not(lm, tokens, exact[0], tolerance, Cached)
    lm.cached = not growing
    if not lm.cached:
        lm.remarks.append(recomputes(name, growing))
    elif lm.device.type == "cuda":
        fixed = _why_not(lm, tokens, exact[0], tolerance, Fixed)
        lm.fixed = not fixed
        lm.remarks.append(choice(name, fixed))
    if rounded(lm):
        lm.remarks.append(_rounding(name, noise, tolerance, expected))


def agree(lm: LanguageModel, batch: Batch) -> bool:
    """Whether sampling gave these completions the log-probabilities that scoring gives them; compared when needed.

    Where they differ, the wrong one of them is replaced by a slower way. False if that was sampling, whose completions
    are then not the policy's.
    """
    reach = batch.prompts.ids.shape[1] + batch.ids.shape[1]
    if reach <= _GROWTH * lm.agreed or (lm.passes == "by_length" and not lm.cached):
        return True
    lm.agreed = reach
    mask, sampled = batch.mask, batch.old_logprobs

    @torch.no_grad()
    def scored(kind: Kind) -> Tensor:
        with _run_as(lm, kind):
            return torch.where(mask, token_logprobs(lm, lm.policy, batch.tokens(), batch.temperature), sampled)

    mistake = precision(lm).mistake
    if lm.checkpointing and lm.cacheless and _apart(scored(lm.cacheless), sampled) > mistake:
        lm.cacheless = "by_length"
    if _apart(scored(lm.passes), sampled) <= mistake:
        return True
    exact = scored("by_length")
    if not exact.isfinite().all():  # no way gives these weights a probability; the loss will stop the run
        lm.agreed = 0
        return True
    if lm.fixed and _apart(sampled, exact) > mistake:
        lm.save_memory()
        lm.agreed = 0
        return False
    kinds = get_args(Kind)[get_args(Kind).index(lm.passes) :]
    lm.passes = next(kind for kind in kinds if _apart(scored(kind), exact) <= mistake)
    lm.cached = _apart(sampled, exact) <= mistake
    name = type(lm.policy).__name__
    together = (
        f"{name} gives sequences of {reach} tokens other numbers if they share what is computed; passes are slower"
    )
    lm.remarks.append(together if lm.cached else recomputes(name))
    return lm.cached


def _rounding(name: str, noise: float, tolerance: float, expected: Precision) -> str:
    """What bfloat16 means for this model, as it was measured."""
    return (
        f"{name} has bfloat16 weights: on a small batch, two ways to compute the same log-probability differ by up to "
        f"{compact(noise, 2)} nats. So a mistake below {compact(tolerance, 2)} nats is not noticed there, nor one "
        f"below {compact(expected.mistake)} in a run, and ratios begin near 1, not at 1"
    )


@contextmanager
def _run_as(lm: LanguageModel, kind: Kind) -> Iterator[None]:
    before, lm.passes = lm.passes, kind
    try:
        yield
    finally:
        lm.passes = before


def _small_batch(lm: LanguageModel) -> TokenBatch:
    """Three prompts of 1, 5 and 3 random tokens with three completions of 1 to 6 tokens each, in mixed order.

    The third prompt is a beginning of the second; so is one completion of another. Two are equal, two begin alike.
    """
    generator = torch.Generator().manual_seed(0)
    known = min(lm.vocabulary, int(lm.policy.get_input_embeddings().weight.shape[0]))
    prompts, ids = (torch.randint(0, known, shape, generator=generator).to(lm.device) for shape in ((3, 5), (9, 6)))
    mask = (torch.arange(5) >= torch.tensor([[4], [0], [2]])).long().to(lm.device)
    prompts[2, 2:], ids[4], ids[5, :3], ids[7] = prompts[1, :3].clone(), ids[3], ids[3, :3], ids[6]
    lengths = torch.tensor([4, 6, 1, 6, 2, 5, 6, 6, 2], device=lm.device)
    return TokenBatch(Prompts([], prompts, mask), torch.arange(9, device=lm.device) // 3, ids, lengths)


@torch.no_grad()
def _alone(lm: LanguageModel, tokens: TokenBatch) -> Tensor:
    """The log-probabilities [3, L] of each prompt's first completion, one sequence at a time, nothing padded."""
    found = torch.zeros(3, tokens.ids.shape[1], device=lm.device)
    for prompt in range(3):
        row = int((tokens.group == prompt).nonzero()[0])
        before = tokens.prompts.ids[prompt][tokens.prompts.mask[prompt].bool()]
        ids = tokens.ids[row, : tokens.lengths[row]]
        logits = lm.policy(input_ids=torch.cat([before, ids])[None], use_cache=False).logits[0]
        found[prompt, : len(ids)] = logprobs_of(logits[len(before) - 1 : -1], ids, 1.0)
    return found


def _with_gradient(lm: LanguageModel, tokens: TokenBatch) -> tuple[Tensor, Tensor]:
    """Log-probabilities [R, L], 0 on padding, and the gradient of their sum by the first two matrices of the policy."""
    matrices = [p for p in lm.policy.parameters() if p.dim() == 2 and p.requires_grad][:2]
    logprobs = token_logprobs(lm, lm.policy, tokens, 1.0, worth_chunking=1) * _inside(tokens)
    gradients = torch.autograd.grad(logprobs.sum(), matrices)
    return logprobs.detach(), torch.cat([gradient.flatten() for gradient in gradients])


def _works(lm: LanguageModel, kind: Kind, tokens: TokenBatch, exact: tuple[Tensor, Tensor], tolerance: float) -> bool:
    """Whether passes of this kind give the log-probabilities and the gradient that are `exact`."""

    def found() -> tuple[Tensor, Tensor]:
        with _run_as(lm, kind):
            return _with_gradient(lm, tokens)

    result = _tried(found)
    if result is None:
        return False
    expected, scale = precision(lm), float(exact[1].abs().max())
    share = expected.gradient * max(1.0, tolerance / expected.rounding)
    return _apart(result[0], exact[0]) <= tolerance and _apart(result[1], exact[1]) <= share * scale


def _again(lm: LanguageModel, kind: Kind, tokens: TokenBatch, exact: tuple[Tensor, Tensor], tolerance: float) -> bool:
    """Whether passes of this kind, whose layers are run again, give what is `exact`."""
    if not layers_of(lm.policy):
        return False
    lm.checkpointing, lm.cacheless = True, kind
    try:
        return _works(lm, kind, tokens, exact, tolerance)
    finally:
        lm.checkpointing = False


def _why_not(lm: LanguageModel, tokens: TokenBatch, exact: Tensor, tolerance: float, kind: type[Cached | Fixed]) -> str:
    """Why a cache that loses and reorders rows meanwhile does not give `exact` log-probabilities; "" if it does."""
    try:
        apart = _apart(_decoded(lm, tokens, kind), exact)
    except _UNSUITED as error:
        return raised(error)
    return "" if apart <= tolerance else differs(apart, tolerance)


@torch.no_grad()
def _decoded(lm: LanguageModel, tokens: TokenBatch, kind: type[Cached | Fixed]) -> Tensor:
    length = tokens.ids.shape[1]
    growing, active = kind(lm, tokens.prompts, tokens.group, length), torch.arange(len(tokens.group), device=lm.device)
    found = torch.zeros(tokens.ids.shape, device=lm.device)
    for position in range(length):
        logits = growing.logits if growing.at is None else growing.logits[growing.at]
        found[active, position] = logprobs_of(logits, tokens.ids[active, position], 1.0)
        kept = (tokens.lengths[active] > position + 1).nonzero().squeeze(-1).flip(0)
        if not len(kept):
            break
        growing.keep(kept)
        active = active[kept]
        growing.step(tokens.ids[active, position])
    return found


def _inside(tokens: TokenBatch) -> Tensor:
    return torch.arange(tokens.ids.shape[1], device=tokens.ids.device) < tokens.lengths[:, None]


def _tried(way: Callable[[], Found]) -> Found | None:
    try:
        return way()
    except _UNSUITED:
        return None


def _apart(a: Tensor, b: Tensor) -> float:
    """The largest difference; infinite if anything is not a number."""
    return float((a - b).abs().nan_to_num(nan=float("inf")).max())
