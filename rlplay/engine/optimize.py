"""Phase 4, the update: passes over the batch in minibatches, one optimizer step and one record each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms import masks
from rlplay.algorithms.aggregation import token_weights
from rlplay.algorithms.settings import Settings
from rlplay.engine.batch import Batch, Passes
from rlplay.engine.objective import Inputs, Terms, objective, value_loss
from rlplay.engine.passes import LOGITS_AT_ONCE, forward, laid_out, logprobs_of
from rlplay.engine.state import Halt, State
from rlplay.engine.tensors import Tensors
from rlplay.engine.trpo import search
from rlplay.trace.records import Notice, Searched, Stepped

_RATIO_TOLERANCE = 1e-4


@dataclass
class _Seen:
    """What one optimizer step saw of its completions: tensors [R, L] in row order, and the parts of the loss."""

    logprobs: Tensor
    ratio: Tensor
    clip_state: Tensor
    dloss_dlogp: Tensor
    dkl_dlogp: Tensor | None
    weights: Tensor
    left_out: Tensor
    kl: Tensor | None
    values: Tensor | None
    loss: float = 0.0
    policy_loss: float = 0.0
    value_loss: float | None = None
    entropy: Tensor | None = None


def optimize(batch: Batch, state: State, seed: int) -> Iterator[Stepped | Searched | Notice]:
    """Take `num_iterations` x `num_minibatches` optimizer steps on the batch, a record after each.

    With surrogate=trpo the policy is moved by a search of its own, and the optimizer fits the value head only.

    Raises Halt, before the weights are touched, if a loss or gradient is not finite.
    """
    settings = state.settings
    for group in state.optimizer.param_groups:
        group["lr"] = settings.learning_rate
    step = 0
    batch.passes = Passes.begun(batch, settings, state.kl_coef)
    for epoch in range(settings.num_iterations):
        batch.passes.epoch = epoch
        parts = minibatches(len(batch.group), settings.num_minibatches, seed, batch.update, epoch, batch.ids.device)
        for minibatch, rows in enumerate(parts):
            seen = _gradients(batch, rows, state)
            # The trust region bounds TRPO's step; a shortened gradient would shrink the predicted gain.
            longest = 0.0 if settings.surrogate == "trpo" else settings.max_grad_norm
            grad_norm = checked_norm(batch.update, state, seen.loss, seen.dloss_dlogp, longest)
            if step == 0:
                yield from ratio_guard(batch.update, seen.ratio[batch.mask[rows]])
            found = {}
            if settings.surrogate == "trpo":
                found = yield from search(batch, state, seen.weights * (seen.left_out == 0))
            state.optimizer.step()
            batch.passes.seen(rows, seen.logprobs, seen.values, seen.entropy, step == 0)
            metrics = _metrics(batch, rows, seen, settings) | {"grad_norm": grad_norm} | found
            if settings.kl_ctrl != "fixed":
                metrics["kl_coef"] = state.kl_coef
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
                dkl_dlogp=None if seen.dkl_dlogp is None else batch.flat(seen.dkl_dlogp, rows),
                weights=batch.flat(seen.weights, rows),
                left_out=batch.flat(seen.left_out, rows),
                kl=None if seen.kl is None else batch.flat(seen.kl, rows),
                values=None if seen.values is None else batch.flat(seen.values, rows),
                metrics=metrics,
            )
            step += 1


def minibatches(count: int, parts: int, seed: int, update: int, epoch: int, device: torch.device) -> list[Tensor]:
    """Which of `count` items are in each minibatch, int64; shuffled by (seed, update, epoch) if there are several."""
    items = np.arange(count)
    if parts > 1:
        items = np.random.default_rng([seed, update, 2, epoch]).permutation(items)
    return [torch.from_numpy(part).to(device) for part in np.array_split(items, min(parts, count))]


@dataclass
class Share:
    """What each token of some completions counts for, all [R, L]; `tokens` is the number in the whole minibatch."""

    weights: Tensor
    keep: Tensor
    bonus: Tensor
    tokens: int

    def split(self, size: int) -> list[Share]:
        """Itself, cut into parts of `size` completions."""
        parts = zip(*[torch.split(values, size) for values in (self.weights, self.keep, self.bonus)], strict=True)
        return [Share(weights, keep, bonus, self.tokens) for weights, keep, bonus in parts]


def share_of(batch: Batch, rows: Tensor, settings: Settings) -> Share:
    """Weights of the aggregation, the tokens whose surrogate counts, and those whose entropy does."""
    mask = _in_loss(batch, rows, settings)
    counted = mask.to(torch.get_default_dtype())
    weights = token_weights(Tensors, settings.aggregation, mask, counted, settings.max_completion_length)
    keep = masks.top_entropy(Tensors, batch.entropy[rows], mask, settings.top_entropy_quantile)
    return Share(weights, keep.float(), keep / keep.sum().clamp(min=1), int(mask.sum()))


def _in_loss(batch: Batch, rows: Tensor, settings: Settings) -> Tensor:
    """bool [R, L], the sampled tokens without those of cut answers where the settings leave these out."""
    mask = batch.mask[rows]
    return mask & ~batch.truncated[rows, None] if settings.mask_truncated_completions else mask


def _gradients(batch: Batch, rows: Tensor, state: State) -> _Seen:
    """Fill the parameters' gradients with those of the minibatch's loss, part by part where it is large."""
    state.optimizer.zero_grad(set_to_none=True)
    size = max(1, LOGITS_AT_ONCE // (state.lm.vocabulary * batch.ids.shape[1]))
    shares = share_of(batch, rows, state.settings).split(size)
    parts = [_backward(batch, part, share, state) for part, share in zip(torch.split(rows, size), shares, strict=True)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _backward(batch: Batch, rows: Tensor, share: Share, state: State) -> _Seen:
    settings = state.settings
    inputs, values = _inputs(batch, rows, state)
    terms = objective(inputs, share.weights, settings, state.kl_coef, share.keep, share.bonus)
    loss, value_error = terms.loss, None
    if values is not None:
        assert batch.values is not None
        assert batch.returns is not None
        value_error = value_loss(
            values, batch.values[rows], batch.returns[rows], share.weights > 0, settings.cliprange_value, share.tokens
        )
        loss = loss + settings.vf_coef * value_error
    of_kl = kl_pull(terms, inputs.logprobs)
    inputs.logprobs.retain_grad()  # only now: it keeps, and adds up, what any pass before would leave
    loss.backward()  # type: ignore[no-untyped-call]
    gradient = inputs.logprobs.grad
    return _Seen(
        inputs.logprobs.detach(), terms.ratio.detach(), terms.clip_state,
        torch.zeros_like(inputs.logprobs) if gradient is None else gradient, of_kl,
        share.weights, left_out(terms, share),
        None if terms.kl is None else terms.kl.detach(),
        None if values is None else values.detach(),
        loss.item(), terms.policy_loss.item(),
        None if value_error is None else value_error.item(),
        None if inputs.entropy is None else inputs.entropy.detach(),
    )  # fmt: skip


def kl_pull(terms: Terms, logprobs: Tensor) -> Tensor | None:
    """The derivative [R, L] of the loss's KL term by each token's log-probability; None if there is no such term.

    0 for the exact KL, which pulls on whole distributions and not on the sampled token alone.
    """
    if terms.kl_loss is None:
        return None
    (pull,) = torch.autograd.grad(terms.kl_loss, logprobs, retain_graph=True, allow_unused=True)
    return torch.zeros_like(logprobs) if pull is None else pull


def left_out(terms: Terms, share: Share) -> Tensor:
    """Why each token's surrogate does not count, as an index of `records.LEFT_OUT`: uint8 [R, L], 0 where it does."""
    reasons = torch.where(terms.kept == 0, 3, 0)
    return torch.where(share.weights == 0, 1, torch.where(share.keep == 0, 2, reasons)).to(torch.uint8)


def _inputs(batch: Batch, rows: Tensor, state: State) -> tuple[Inputs, Tensor | None]:
    """A pass of the policy over the completions: what the loss reads of it, and the value head's predictions."""
    assert batch.advantages is not None
    assert batch.ref_logprobs is not None
    settings, width, ids = state.settings, batch.ids.shape[1], batch.ids[rows]
    logprobs, values, distributions, entropies = [], [], [], []
    for chunk in forward(state.lm, state.lm.policy, batch.tokens(rows), batch.values is not None):
        own = logprobs_of(chunk.logits, ids[chunk.rows, : chunk.logits.shape[1]], batch.temperature)
        logprobs.append((chunk.rows, own))
        if chunk.hidden is not None:
            # TRPO's gradient is the surrogate's alone; the value loss fits only the head.
            features = chunk.hidden.detach() if settings.surrogate == "trpo" else chunk.hidden
            values.append((chunk.rows, state.value_head(features.float()).squeeze(-1)))
        if batch.anchor is None and not settings.entropy_coef:
            continue
        whole = (chunk.logits.float() / batch.temperature).log_softmax(-1)
        if batch.anchor is not None:
            distributions.append((chunk.rows, whole))
        if settings.entropy_coef:
            entropies.append((chunk.rows, -(whole.exp() * whole).sum(-1)))
    inputs = Inputs(
        laid_out(logprobs, width), batch.old_logprobs[rows], batch.ref_logprobs[rows], batch.advantages[rows],
        laid_out(distributions, width) if distributions else None,
        None if batch.anchor is None else batch.anchor[rows],
        laid_out(entropies, width) if entropies else None,
    )  # fmt: skip
    return inputs, laid_out(values, width) if values else None


def _joined(parts: list[_Seen]) -> _Seen:
    def cat(name: str) -> Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    first = parts[0]
    return _Seen(
        cat("logprobs"), cat("ratio"), cat("clip_state"), cat("dloss_dlogp"),
        None if first.dkl_dlogp is None else cat("dkl_dlogp"),
        cat("weights"), cat("left_out"),
        None if first.kl is None else cat("kl"),
        None if first.values is None else cat("values"),
        sum(part.loss for part in parts), sum(part.policy_loss for part in parts),
        None if first.value_loss is None else sum(part.value_loss or 0.0 for part in parts),
        None if first.entropy is None else cat("entropy"),
    )  # fmt: skip


def checked_norm(update: int, state: State, loss: float, dloss_dlogp: Tensor, longest: float) -> float:
    """The norm of the gradients, which are then cut to `longest`, unless that is 0.

    Raises Halt if the norm or the loss is not finite.
    """
    used = [p for p in state.parameters.values() if p.grad is not None]
    norm = float(torch.nn.utils.clip_grad_norm_(used, longest or float("inf")))
    if np.isfinite(loss) and np.isfinite(norm):
        return norm
    bad = int((~torch.isfinite(dloss_dlogp)).sum())
    raise Halt(
        f"update {update}: loss {loss:g}, gradient norm {norm:g} ({bad} tokens not finite). "
        "The weights were not changed. Lower learning_rate or temperature, or lower max_grad_norm, then continue."
    )


def ratio_guard(update: int, ratio: Tensor) -> Iterator[Notice]:
    """Before any step the policy is the one that sampled: a ratio off 1 is a bug or a mismatch, and is shown."""
    off = float((ratio - 1).abs().max())
    if off > _RATIO_TOLERANCE:
        yield Notice(
            update=update,
            level="warning",
            text=f"ratio is off by {off:.2g} before the first optimizer step of update {update}: "
            "sampling and training disagree about these tokens' probabilities",
        )


def _metrics(batch: Batch, rows: Tensor, seen: _Seen, settings: Settings) -> dict[str, float]:
    mask = _in_loss(batch, rows, settings)
    low, high = settings.clip_range
    counted = mask.clone()
    if settings.importance_sampling_level in ("sequence", "sequence_sum"):
        counted[:, 1:] = False  # one ratio per answer counts once, as in TRL
    ratio, state = seen.ratio[counted], seen.clip_state[counted]
    low_share, high_share = _mean(state < 0), _mean(state == 1)
    metrics = {
        "loss": seen.loss,
        "policy_loss": seen.policy_loss,
        "learning_rate": settings.learning_rate,
        "clip_ratio/low_mean": low_share,
        "clip_ratio/high_mean": high_share,
        "clip_ratio/region_mean": low_share + high_share,
        "ratio_max": max(ratio.tolist(), default=1.0),
    }
    if settings.importance_sampling_level == "geometric":
        change = (seen.logprobs - batch.old_logprobs[rows])[counted]
        metrics["ratio_outside"] = _mean((change < -low) | (change > high))
    elif settings.surrogate == "ppo":
        metrics["ratio_outside"] = _mean((ratio < 1 - low) | (ratio > 1 + high))
    if settings.delta is not None:
        metrics["clip_ratio/delta_mean"] = _mean(state == 2)
    if settings.surrogate == "cispo":
        assert batch.advantages is not None
        metrics["cispo_clip_ratio"] = _mean((ratio > high) & (batch.advantages[rows][counted] > 0))
    if seen.kl is not None:
        metrics["kl" if settings.kl_anchor == "ref" else "kl_penalty"] = _mean(seen.kl[mask])
    if seen.value_loss is not None:
        metrics["value_loss"] = seen.value_loss
    return metrics


def _mean(values: Tensor) -> float:
    """Of however many there are; 0 where every token is left out."""
    return values.sum().item() / max(len(values), 1)
