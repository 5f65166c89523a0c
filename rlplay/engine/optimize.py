"""Phase 4, the update: passes over the batch in minibatches, one optimizer step and one record each.

The one loop of every loss: rewards (`policy_gradient.py`), pairs and demonstrations (`learn_from_answers.py`) and
reward models (`learn_reward_model.py`) differ in how they fill the gradients of a minibatch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms.own_choices import is_own, place
from rlplay.algorithms.settings import Settings
from rlplay.engine.agreement import precision
from rlplay.engine.batch import Batch, Passes
from rlplay.engine.distillation.average import follow
from rlplay.engine.entropy_bonus import adapt
from rlplay.engine.mismatch import sampler_guard
from rlplay.engine.passes import score_tokens
from rlplay.engine.state import Halt, State
from rlplay.engine.stopwatch import spent_on, timed
from rlplay.engine.transfer import to_device, to_host
from rlplay.engine.trpo import search
from rlplay.trace.numbers import compact
from rlplay.trace.records import Notice, Searched, Stepped


@dataclass
class TrainedMinibatch:
    """A minibatch whose gradients are in place: tensors [R, L] of the completions `rows` [R]; `margins` [P] of pairs.

    Each is what the field of `Stepped` with its name records, None where the loss has none; `entropy` is of the whole
    next-token distributions. `metrics` has the "loss". Once `brought`, all of it is on the CPU, and metrics are floats;
    before, they are floats or scalar tensors.
    """

    rows: Tensor
    logprobs: Tensor
    ratio: Tensor
    dloss_dlogp: Tensor
    metrics: dict[str, Any]
    clip_state: Tensor | None = None
    dkl_dlogp: Tensor | None = None
    weights: Tensor | None = None
    left_out: Tensor | None = None
    kl: Tensor | None = None
    distillation: Tensor | None = None
    values: Tensor | None = None
    entropy: Tensor | None = None
    margins: Tensor | None = None


def brought(parts: Sequence[TrainedMinibatch]) -> list[TrainedMinibatch]:
    """The same minibatches on the host, which waits for the device once."""
    names = [field.name for field in fields(TrainedMinibatch) if field.name != "metrics"]
    every = [[getattr(part, name) for name in names] + [*part.metrics.values()] for part in parts]
    arrived = iter(to_host([value for values in every for value in values if isinstance(value, Tensor)]))
    found = []
    for part, values in zip(parts, every, strict=True):
        here = [next(arrived) if isinstance(value, Tensor) else value for value in values]
        metrics = {name: float(value) for name, value in zip(part.metrics, here[len(names) :], strict=True)}
        found.append(TrainedMinibatch(**dict(zip(names, here, strict=False)), metrics=metrics))
    return found


def optimize(
    batch: Batch, items: int, gradients: Callable[[Tensor], TrainedMinibatch], state: State, seed: int
) -> Iterator[Stepped | Searched | Notice]:
    """Take `num_iterations` x `num_minibatches` optimizer steps on the batch, a record after each.

    `gradients` fills the parameters' gradients with those of some of the `items` (completions or pairs), int64 [M] on
    the CPU, and says there what it has seen.
    With surrogate=trpo the policy is moved by TRPO's search, and the optimizer fits the value head only.

    Raises Halt, before the weights are touched, if a loss or gradient is not finite.
    """
    settings, step = state.settings, 0
    trpo = settings.loss_type == "policy_gradient" and settings.surrogate_row.trust_region
    batch.passes = Passes.begun(batch, settings, state.kl_coef, state.entropy_coef)
    batch.passes.seed = seed
    for epoch in range(settings.num_iterations):
        batch.passes.epoch = epoch
        parts = minibatches(items, settings.num_minibatches, seed, batch.update, epoch)
        for minibatch, part in enumerate(parts):
            state.optimizer.zero_grad(set_to_none=True)
            batch.passes.entropy_coef = state.entropy_coef
            seen = gradients(part)
            # The trust region bounds TRPO's step; a shortened gradient would shrink the predicted gain.
            grad_norm = checked_norm(batch.update, state, seen, 0.0 if trpo else settings.max_grad_norm)
            if step == 0:
                yield from sampler_guard(batch, state.sampling_lm)
                if not batch.from_sampler:
                    yield from ratio_guard(batch.update, seen.ratio, precision(state.lm).ratio)
            found = (yield from _searched(batch, state, seen)) if trpo else {}
            rate = state.learning_rate(step)
            for group in state.optimizer.param_groups:
                group["lr"], group["weight_decay"] = rate, settings.weight_decay if group["decays"] else 0.0
            batch.passes.moved |= grad_norm > 0 or moves_on(state.optimizer)
            with spent_on("step"):
                state.optimizer.step()
                follow(state, state.update * settings.steps + step + 1)
            if state.move_reference(step):
                _follow(batch, state)
            batch.passes.seen(seen.rows, seen.logprobs, seen.values, seen.entropy, step == 0)
            metrics = seen.metrics | {"grad_norm": grad_norm, "learning_rate": rate} | found
            metrics |= adapt(state, seen.entropy, seen.weights, seen.left_out)
            batch.step_metrics.append(metrics)
            yield stepped(batch, seen, metrics, step, (epoch, settings.num_iterations), (minibatch, len(parts)))
            step += 1


def _follow(batch: Batch, state: State) -> None:
    """The reference has moved, which reads pairs anew; rewarded answers it has read when they got credit, as in TRL."""
    assert batch.passes is not None
    batch.passes.referred = False
    if state.settings.loss_type != "policy_gradient" and batch.ref_logprobs is not None:
        nothing = batch.top_ids[..., :0]
        with spent_on("reference"):
            batch.ref_logprobs, _ = score_tokens(
                state.lm, state.lm.reference, batch.tokens(), nothing, batch.temperature
            )


def _searched(
    batch: Batch, state: State, seen: TrainedMinibatch
) -> Generator[Searched | Notice, None, dict[str, float]]:
    (kept,) = to_device([_kept(seen)], batch.ids.device)
    return (yield from timed("search", search(batch, state, kept)))


def moves_on(optimizer: torch.optim.Optimizer) -> bool:
    """Whether Adam would change weights whose gradient is 0: by its momentum, or because they decay."""
    if any(group["weight_decay"] for group in optimizer.param_groups):
        return True
    moments = [state["exp_avg"].any() for state in optimizer.state.values()]
    return bool(moments) and bool(torch.stack(moments).any())


def minibatches(count: int, parts: int, seed: int, update: int, epoch: int) -> list[Tensor]:
    """Which of `count` items are in each minibatch, int64 on the CPU; shuffled by (seed, update, epoch) if there are
    several."""
    items = np.arange(count)
    if parts > 1:
        items = np.random.default_rng([seed, update, 2, epoch]).permutation(items)
    return [torch.from_numpy(part) for part in np.array_split(items, min(parts, count))]


@spent_on("step")
def checked_norm(update: int, state: State, seen: TrainedMinibatch, longest: float) -> float:
    """The norm of the gradients, which are then cut to `longest`, unless that is 0.

    Raises Halt if the norm or the loss is not finite.
    """
    used, loss = [p for p in state.parameters.values() if p.grad is not None], seen.metrics["loss"]
    norm = float(torch.nn.utils.clip_grad_norm_(used, longest or float("inf")))
    if np.isfinite(loss) and np.isfinite(norm):
        return norm
    bad = int((~torch.isfinite(seen.dloss_dlogp)).sum())
    if bad and own_at_fault(seen, state.settings):
        raise Halt(
            f"update {update}: {place(state.settings.surrogate)} has a gradient that is not finite for {bad} tokens. "
            "The weights were not changed. Mend the function, then continue."
        )
    raise Halt(
        f"update {update}: loss {compact(loss)}, gradient norm {compact(norm)} ({bad} tokens not finite). "
        "The weights were not changed. Lower learning_rate or temperature, or lower max_grad_norm, then continue."
    )


def own_at_fault(seen: TrainedMinibatch, settings: Settings) -> bool:
    """Whether the user's surrogate made gradients that are not finite: all else that the loss is made of is finite."""
    if settings.loss_type != "policy_gradient" or not is_own(settings.surrogate):
        return False
    others = [seen.logprobs, seen.ratio, *(x for x in (seen.kl, seen.dkl_dlogp) if x is not None)]
    return np.isfinite(seen.metrics["loss"]) and all(bool(x.isfinite().all()) for x in others)


def ratio_guard(update: int, ratio: Tensor, tolerance: float) -> Iterator[Notice]:
    """Before any step the old log-probabilities are the policy's: a ratio further off 1 than by rounding is a bug, and
    is shown."""
    off = float((ratio - 1).abs().max())
    if off > tolerance:
        yield Notice(
            update=update,
            level="warning",
            text=f"ratio is off by {compact(off, 2)} before the first optimizer step of update {update}: "
            "sampling and training disagree about these tokens' probabilities",
        )


def _kept(seen: TrainedMinibatch) -> Tensor:
    """The weights [R, L] of the tokens whose surrogate counts, 0 for the others."""
    assert seen.weights is not None
    assert seen.left_out is not None
    return seen.weights * (seen.left_out == 0)


def stepped(
    batch: Batch, seen: TrainedMinibatch, metrics: dict[str, float], step: int = 0,
    epoch: tuple[int, int] = (0, 1), minibatch: tuple[int, int] = (0, 1),
) -> Stepped:  # fmt: skip
    """The record of an optimizer step; `epoch` and `minibatch` are each a number from 0 and how many there are."""

    clipped = torch.zeros_like(seen.ratio, dtype=torch.int8) if seen.clip_state is None else seen.clip_state
    tokens = {
        "logprobs": seen.logprobs, "importance_ratio": seen.ratio, "clip_state": clipped,
        "dloss_dlogp": seen.dloss_dlogp, "dkl_dlogp": seen.dkl_dlogp, "weights": seen.weights,
        "left_out": seen.left_out, "kl": seen.kl, "distillation": seen.distillation, "values": seen.values,
    }  # fmt: skip
    return Stepped(
        update=batch.update,
        step=step,
        epoch=epoch[0],
        epochs=epoch[1],
        minibatch=minibatch[0],
        minibatches=minibatch[1],
        rows=seen.rows.numpy().astype(np.int32),
        metrics=metrics,
        margins=None if seen.margins is None else seen.margins.numpy(),
        **batch.flat_each(tokens, seen.rows),
    )
