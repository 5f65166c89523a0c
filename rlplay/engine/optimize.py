"""Phase 4, the update: passes over the batch in minibatches, one optimizer step and one record each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.axes import aggregation
from rlplay.engine.batch import Batch
from rlplay.engine.objective import objective, value_loss
from rlplay.engine.passes import LOGITS_AT_ONCE, forward, laid_out, logprobs_of
from rlplay.engine.state import Halt, State
from rlplay.scenario.settings import Settings
from rlplay.trace.records import Notice, Stepped

_RATIO_TOLERANCE = 1e-4


@dataclass
class _Seen:
    """What one optimizer step saw of its completions: tensors [R, L] in row order, and the parts of the loss."""

    logprobs: Tensor
    ratio: Tensor
    clip_state: Tensor
    dloss_dlogp: Tensor
    kl: Tensor | None
    values: Tensor | None
    loss: float = 0.0
    policy_loss: float = 0.0
    value_loss: float | None = None


def optimize(batch: Batch, state: State, seed: int) -> Iterator[Stepped | Notice]:
    """Take `num_iterations` x `num_minibatches` optimizer steps on the batch, a record after each.

    Raises Halt, before the weights are touched, if a loss or gradient is not finite.
    """
    settings = state.settings
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate
    step = 0
    for epoch in range(settings.num_iterations):
        parts = minibatches(batch, settings, seed, epoch)
        for minibatch, rows in enumerate(parts):
            seen = _gradients(batch, rows, state)
            grad_norm = _checked_norm(batch, state, seen)
            if step == 0:
                yield from _ratio_guard(batch, rows, seen)
            state.optimizer.step()
            metrics = _metrics(batch, rows, seen, settings) | {"grad_norm": grad_norm}
            batch.step_metrics.append(metrics)
            yield Stepped(
                update=batch.update,
                step=step,
                epoch=epoch,
                epochs=settings.num_iterations,
                minibatch=minibatch,
                minibatches=len(parts),
                rows=rows.cpu().numpy().astype(np.int32),
                logprobs=batch.flat(seen.logprobs, rows),
                importance_ratio=batch.flat(seen.ratio, rows),
                clip_state=batch.flat(seen.clip_state, rows),
                dloss_dlogp=batch.flat(seen.dloss_dlogp, rows),
                kl=None if seen.kl is None else batch.flat(seen.kl, rows),
                values=None if seen.values is None else batch.flat(seen.values, rows),
                metrics=metrics,
            )
            step += 1


def minibatches(batch: Batch, settings: Settings, seed: int, epoch: int) -> list[Tensor]:
    """The completions of each minibatch, int64; shuffled by (seed, update, epoch) if there are several."""
    rows = np.arange(len(batch.group))
    if settings.num_minibatches > 1:
        rows = np.random.default_rng([seed, batch.update, 2, epoch]).permutation(rows)
    parts = np.array_split(rows, min(settings.num_minibatches, len(rows)))
    return [torch.from_numpy(part).to(batch.ids.device) for part in parts]


def _gradients(batch: Batch, rows: Tensor, state: State) -> _Seen:
    """Fill the parameters' gradients with those of the minibatch's loss, part by part where it is large."""
    state.optimizer.zero_grad(set_to_none=True)
    width = batch.ids.shape[1]
    size = max(1, LOGITS_AT_ONCE // (state.lm.vocabulary * width))
    mask = batch.mask[rows]
    weights = aggregation.weights(state.settings.aggregation, mask, state.settings.max_completion_length)
    parts = [
        _backward(batch, part, weight, int(mask.sum()), state)
        for part, weight in zip(torch.split(rows, size), torch.split(weights, size), strict=True)
    ]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _backward(batch: Batch, rows: Tensor, weights: Tensor, tokens: int, state: State) -> _Seen:
    settings, width = state.settings, batch.ids.shape[1]
    assert batch.advantages is not None
    assert batch.ref_logprobs is not None
    ids, hidden = batch.ids[rows], batch.values is not None
    logprob_parts, value_parts = [], []
    for chunk in forward(state.lm, state.lm.policy, batch.tokens(rows), hidden):
        own = logprobs_of(chunk.logits, ids[chunk.rows, : chunk.logits.shape[1]], batch.temperature)
        logprob_parts.append((chunk.rows, own))
        if chunk.hidden is not None:
            value_parts.append((chunk.rows, state.value_head(chunk.hidden.float()).squeeze(-1)))
    logprobs = laid_out(logprob_parts, width)
    logprobs.retain_grad()
    terms = objective(
        logprobs, batch.old_logprobs[rows], batch.ref_logprobs[rows], batch.advantages[rows], weights, settings
    )
    loss, values = terms.loss, None
    if batch.values is not None and batch.returns is not None:
        values = laid_out(value_parts, width)
        terms.value_loss = value_loss(
            values, batch.values[rows], batch.returns[rows], weights > 0, settings.cliprange_value, tokens
        )
        loss = loss + settings.vf_coef * terms.value_loss
    loss.backward()  # type: ignore[no-untyped-call]
    gradient = logprobs.grad
    assert gradient is not None
    return _Seen(
        logprobs.detach(), terms.ratio.detach(), terms.clip_state, gradient,
        None if terms.kl is None else terms.kl.detach(),
        None if values is None else values.detach(),
        loss.item(), terms.policy_loss.item(),
        None if terms.value_loss is None else terms.value_loss.item(),
    )  # fmt: skip


def _joined(parts: list[_Seen]) -> _Seen:
    def cat(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    first = parts[0]
    return _Seen(
        cat("logprobs"), cat("ratio"), cat("clip_state"), cat("dloss_dlogp"),
        None if first.kl is None else cat("kl"),
        None if first.values is None else cat("values"),
        sum(part.loss for part in parts), sum(part.policy_loss for part in parts),
        None if first.value_loss is None else sum(part.value_loss or 0.0 for part in parts),
    )  # fmt: skip


def _checked_norm(batch: Batch, state: State, seen: _Seen) -> float:
    used = [p for p in state.parameters.values() if p.grad is not None]
    norm = float(torch.nn.utils.clip_grad_norm_(used, state.settings.max_grad_norm or float("inf")))
    if np.isfinite(seen.loss) and np.isfinite(norm):
        return norm
    bad = int((~torch.isfinite(seen.dloss_dlogp)).sum())
    raise Halt(
        f"update {batch.update}: loss {seen.loss:g}, gradient norm {norm:g} ({bad} tokens not finite). "
        "The weights were not changed. Lower learning_rate or temperature, or raise max_grad_norm's grip, then go on."
    )


def _ratio_guard(batch: Batch, rows: Tensor, seen: _Seen) -> Iterator[Notice]:
    """Before any step the policy is the one that sampled: a ratio off 1 is a bug or a mismatch, and is shown."""
    off = float((seen.ratio - 1).abs()[batch.mask[rows]].max())
    if off > _RATIO_TOLERANCE:
        yield Notice(
            update=batch.update,
            level="warning",
            text=f"ratio is off by {off:.2g} before the first optimizer step of update {batch.update}: "
            "sampling and training disagree about these tokens' probabilities",
        )


def _metrics(batch: Batch, rows: Tensor, seen: _Seen, settings: Settings) -> dict[str, float]:
    mask = batch.mask[rows]
    ratio, state = seen.ratio[mask], seen.clip_state[mask]
    high = settings.epsilon if settings.epsilon_high is None else settings.epsilon_high
    outside = (ratio < 1 - settings.epsilon) | (ratio > 1 + high)
    low_share, high_share = (state < 0).float().mean().item(), (state > 0).float().mean().item()
    metrics = {
        "loss": seen.loss,
        "policy_loss": seen.policy_loss,
        "learning_rate": settings.learning_rate,
        "clip_ratio/low_mean": low_share,
        "clip_ratio/high_mean": high_share,
        "clip_ratio/region_mean": low_share + high_share,
        "ratio_outside": outside.float().mean().item(),
        "ratio_max": ratio.max().item(),
    }
    if seen.kl is not None:
        metrics["kl"] = seen.kl[mask].mean().item()
    if seen.value_loss is not None:
        metrics["value_loss"] = seen.value_loss
    return metrics
