"""Optimizer steps on a batch of pairs: passes, minibatches, one record each; what is learned is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.model import LanguageModel
from rlplay.engine.optimize import checked_norm, minibatches, ratio_guard
from rlplay.engine.passes import LOGITS_AT_ONCE
from rlplay.engine.state import State
from rlplay.trace.records import Notice, Stepped

Found = TypeVar("Found")


@dataclass
class Learned:
    """One minibatch whose gradients are in place: tensors [R, L] of the completions `rows` [R]; `margins` [P]."""

    rows: Tensor
    logprobs: Tensor
    dloss_dlogp: Tensor
    metrics: dict[str, float]
    values: Tensor | None = None
    margins: Tensor | None = None


def backpropagated(
    rows: Tensor, batch: Batch, lm: LanguageModel, outputs: Callable[[Tensor], Tensor],
    derivative: Callable[[Tensor], tuple[Tensor, Found]],
) -> tuple[Tensor, Tensor, Found]:  # fmt: skip
    """Fill the gradients of a loss of some completions; returns their outputs, its derivative by them, what it found.

    `outputs` [R, L] is a pass over the completions it is given, `derivative` the loss's by those of all of them.

    Where one graph would be too large, `outputs` is computed again piece by piece, now that the derivative is known;
    the loss itself is never cut up.
    """
    pieces = torch.split(rows, max(1, LOGITS_AT_ONCE // (lm.vocabulary * batch.ids.shape[1])))
    with torch.set_grad_enabled(len(pieces) == 1):
        whole = torch.cat([outputs(piece) for piece in pieces])
    pull, found = derivative(whole.detach().clone().requires_grad_())
    if len(pieces) == 1:
        whole.backward(pull)  # type: ignore[no-untyped-call]
    else:
        for piece, share in zip(pieces, torch.split(pull, len(pieces[0])), strict=True):
            outputs(piece).backward(share)  # type: ignore[no-untyped-call]
    return whole.detach(), pull, found


def descend(
    batch: Batch, pairs: int, state: State, seed: int, learn: Callable[[Tensor], Learned]
) -> Iterator[Stepped | Notice]:
    """`num_iterations` x `num_minibatches` optimizer steps; `learn` puts the gradients of some pairs in place.

    Where no pair has a label there is nothing to learn from: no step is taken, and a notice says so.

    Raises Halt, before the weights are touched, if a loss or gradient is not finite.
    """
    if not pairs:
        yield Notice(
            update=batch.update,
            level="warning",
            text=f"No pair of update {batch.update} has a better answer: no step was taken. For answers that differ, "
            "raise temperature; for more pairs, num_prompts.",
        )
        return
    settings, step = state.settings, 0
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate
    for epoch in range(settings.num_iterations):
        parts = minibatches(pairs, settings.num_minibatches, seed, batch.update, epoch, batch.ids.device)
        for minibatch, part in enumerate(parts):
            state.optimizer.zero_grad(set_to_none=True)
            learned = learn(part)
            rows = learned.rows
            ratio = torch.where(batch.mask[rows], learned.logprobs - batch.old_logprobs[rows], 0.0).exp()
            grad_norm = checked_norm(
                batch.update, state, learned.metrics["loss"], learned.dloss_dlogp, settings.max_grad_norm
            )
            if step == 0:
                yield from ratio_guard(batch.update, ratio)
            state.optimizer.step()
            metrics = learned.metrics | {"grad_norm": grad_norm, "learning_rate": settings.learning_rate}
            batch.step_metrics.append(metrics)
            yield Stepped(
                update=batch.update,
                step=step,
                epoch=epoch,
                epochs=settings.num_iterations,
                minibatch=minibatch,
                minibatches=len(parts),
                rows=rows.cpu().numpy().astype(np.int32),
                logprobs=batch.flat(learned.logprobs, rows),
                importance_ratio=batch.flat(ratio, rows),
                clip_state=batch.flat(torch.zeros_like(ratio, dtype=torch.int8), rows),
                dloss_dlogp=batch.flat(learned.dloss_dlogp, rows),
                kl=None,
                values=None if learned.values is None else batch.flat(learned.values, rows),
                margins=None if learned.margins is None else learned.margins.cpu().numpy(),
                metrics=metrics,
            )
            step += 1
