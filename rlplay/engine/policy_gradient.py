"""The loss of rewarded completions and its gradients: what an optimizer step of a policy gradient does.

Completions whose graph would be too large are backpropagated part by part: the loss is a sum over their tokens. Those
that cannot change the weights, such as a group of equal rewards, get no backward pass.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms.corrections import logarithm
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.agreement import rounded
from rlplay.engine.batch import Batch
from rlplay.engine.covariance import by_covariance
from rlplay.engine.distillation.teacher import at_policy, teacher_distributions
from rlplay.engine.log_softmax import widened
from rlplay.engine.objective import Inputs, Terms, objective, value_loss
from rlplay.engine.optimize import TrainedMinibatch, brought
from rlplay.engine.passes import forward, laid_out, rows_at_once
from rlplay.engine.routers import balance, with_balance
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import Tensors
from rlplay.engine.token_shares import Share, in_loss, on_device, share_of
from rlplay.engine.transfer import to_device
from rlplay.trace.records import OFF_POLICY


def gradients(batch: Batch, rows: Tensor, state: State) -> TrainedMinibatch:
    """Fill the parameters' gradients with those of the loss of the completions `rows`, int64 on the CPU.

    What decides how is on the CPU, too, and so is what is returned: a GPU is waited for once.
    """
    share, places = share_of(batch, rows, state.settings), torch.arange(len(rows))
    share = by_covariance(batch, rows, share, state)
    silent = without_gradient(batch, rows, share, state)
    loud, quiet = ranks.mine(places[~silent]), ranks.mine(places[silent])

    def parts_of() -> list[tuple[Tensor, TrainedMinibatch]]:
        pieces = torch.split(loud, rows_at_once(state.lm, batch.ids.shape[1], _copies(state.settings)))
        pieces = pieces if len(loud) else ()
        own = [*pieces, quiet] if len(quiet) else [*pieces]
        seen = [_backward(batch, rows[piece], share.select(piece), state) for piece in pieces]
        if len(quiet):
            seen.append(_silent(batch, rows[quiet], share.select(quiet), state))
        return list(zip(own, brought(seen), strict=True))

    parts = [part for own in ranks.each(parts_of) for part in own]
    routed = balance(batch, rows, state)
    ranks.add_gradients(state.parameters.values())
    seen = parts[0][1] if len(parts) == 1 else _joined([each for _, each in parts], torch.cat([p for p, _ in parts]))
    seen.metrics = with_balance(step_metrics(batch, seen, state.settings), routed, state.settings)
    if state.settings.kl_ctrl != "fixed":
        seen.metrics["kl_coef"] = state.kl_coef
    return seen


def without_gradient(batch: Batch, rows: Tensor, share: Share, state: State) -> Tensor:
    """Which of the completions `rows` add exactly 0 to the gradient, whatever the policy makes of them: bool [R], on
    the CPU as they are.

    Most built-in surrogates have the advantage as a factor; a KL or entropy in the loss, a value head, and a function
    of the user's may have a gradient without it, and so may a teacher's term. TRPO reads all completions for its
    constraint.
    """
    settings = state.settings
    in_loss = state.kl_coef if settings.kl_placement == "loss" else 0.0
    others = (
        in_loss
        or settings.surrogate_row.always
        or settings.entropy_in_loss
        or batch.values is not None
        or settings.distils_in_loss
    )
    if others or settings.surrogate_row.trust_region or is_own(settings.surrogate):
        return torch.zeros_like(rows, dtype=torch.bool)
    (advantages,) = batch.on_host("advantages")
    counted = share.weights > 0 if batch.correction is None else share.weights * share.keep > 0
    return ~((advantages[rows] != 0) & counted).any(dim=1)


def _copies(settings: Settings) -> int:
    """How often the loss holds numbers for every token of the vocabulary at once: more than a pass does if it compares
    the policy's with a teacher's."""
    return 4 if settings.distils_in_loss and settings.mode_row.whole else 1


@torch.no_grad()
def _silent(batch: Batch, rows: Tensor, share: Share, state: State) -> TrainedMinibatch:
    """What the loss reads of completions without a gradient.

    Before the first optimizer step the policy is the one that sampled them, so that no pass is needed either.
    """
    if batch.step_metrics or batch.from_sampler or rounded(state.lm):
        there, share = on_device(batch, rows, share)
        inputs, _ = inputs_of(batch, rows, there, state)
    else:
        old, advantages = (values[rows] for values in batch.on_host("old_logprobs", "advantages"))
        inputs = Inputs(old, old, None, advantages)  # a loss that reads the reference has a gradient
    terms = _terms(inputs, share, state)
    for parameter in state.lm.policy.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)  # Adam moves on by its momentum where a gradient is 0
    return seen_of(rows, inputs.logprobs, terms, share, None, None)


def _terms(inputs: Inputs, share: Share, state: State) -> Terms:
    beta, coefficient = state.kl_coef, state.entropy_coef
    return objective(inputs, share.weights, state.settings, beta, share.keep, share.bonus, coefficient, share.held)


def _backward(batch: Batch, rows: Tensor, share: Share, state: State) -> TrainedMinibatch:
    settings = state.settings
    there, share = on_device(batch, rows, share)
    inputs, values = inputs_of(batch, rows, there, state)
    terms = _terms(inputs, share, state)
    loss, losses = terms.loss, {}
    if values is not None:
        assert batch.values is not None
        assert batch.returns is not None
        error = value_loss(
            values, batch.values[there], batch.returns[there], share.weights > 0, settings.cliprange_value, share.tokens
        )
        loss = loss + settings.vf_coef * error
        losses = {"loss": loss.detach(), "value_loss": error.detach()}
    dkl_dlogp = kl_gradient(terms, inputs.logprobs)
    inputs.logprobs.retain_grad()  # only now: it keeps, and adds up, what any pass before would leave
    with spent_on("backward"):
        loss.backward()  # type: ignore[no-untyped-call]
    gradient = inputs.logprobs.grad
    seen = seen_of(rows, inputs.logprobs, terms, share, gradient, dkl_dlogp)
    seen.metrics |= losses
    seen.values = None if values is None else values.detach()
    seen.entropy = None if inputs.entropy is None else inputs.entropy.detach()
    return seen


def seen_of(
    rows: Tensor, logprobs: Tensor, terms: Terms, share: Share, gradient: Tensor | None, dkl_dlogp: Tensor | None
) -> TrainedMinibatch:
    """What the loss made of the completions `rows`, given its derivative by their log-probabilities, None for 0."""
    return TrainedMinibatch(
        rows, logprobs.detach(), terms.ratio.detach(),
        torch.zeros_like(logprobs) if gradient is None else gradient,
        {"loss": terms.loss.detach(), "policy_loss": terms.policy_loss.detach()},
        clip_state=terms.clip_state, dkl_dlogp=dkl_dlogp, weights=share.weights, left_out=_left_out(terms, share),
        kl=None if terms.kl is None else terms.kl.detach(),
        distillation=None if terms.distillation is None else terms.distillation.detach(),
    )  # fmt: skip


def kl_gradient(terms: Terms, logprobs: Tensor) -> Tensor | None:
    """The derivative [R, L] of the loss's KL term by each token's log-probability; None if there is no such term.

    0 for the exact KL, which depends on whole distributions and not on the sampled token alone.
    """
    if terms.kl_loss is None:
        return None
    (gradient,) = torch.autograd.grad(terms.kl_loss, logprobs, retain_graph=True, allow_unused=True)
    return torch.zeros_like(logprobs) if gradient is None else gradient


def _left_out(terms: Terms, share: Share) -> Tensor:
    """Why each token's surrogate does not count, as an index of `records.LEFT_OUT`: uint8 [R, L], 0 where it does."""
    return torch.where((share.left_out == 0) & (terms.kept == 0), OFF_POLICY, share.left_out).to(torch.uint8)


@spent_on("forward")
def inputs_of(batch: Batch, rows: Tensor, there: Tensor, state: State) -> tuple[Inputs, Tensor | None]:
    """A pass of the policy over the completions `rows`, which on the device are `there`: what the loss reads of it, and
    the value head's predictions."""
    assert batch.advantages is not None
    settings, width, ids = state.settings, batch.ids.shape[1], batch.ids[there]
    logprobs, values, distributions, entropies = [], [], [], []
    taught = settings.distils_in_loss and not at_policy(state)
    whole_taught = taught and settings.mode_row.whole
    for chunk in forward(state.lm, state.lm.policy, batch.tokens(rows), batch.values is not None):
        logprobs.append((chunk.rows, chunk.logprobs(ids[chunk.rows, : chunk.width], batch.temperature)))
        if chunk.hidden is not None:
            # TRPO's gradient is the surrogate's alone; the value loss fits only the head.
            features = chunk.hidden.detach() if settings.surrogate_row.trust_region else chunk.hidden
            values.append((chunk.rows, chunk.spread(state.value_head(widened(features)).squeeze(-1))))
        if batch.anchor is None and not settings.entropy_in_loss and not whole_taught:
            continue
        whole = (widened(chunk.logits) / batch.temperature).log_softmax(-1)
        if batch.anchor is not None or whole_taught:
            distributions.append((chunk.rows, chunk.spread(whole)))
        if settings.entropy_in_loss:
            entropies.append((chunk.rows, chunk.spread(-(whole.exp() * whole).sum(-1))))
    ref_logprobs = None if batch.ref_logprobs is None else batch.ref_logprobs[there]
    inputs = Inputs(
        laid_out(logprobs, width), batch.old_logprobs[there], ref_logprobs, batch.advantages[there],
        laid_out(distributions, width) if distributions else None,
        None if batch.anchor is None else batch.anchor[there],
        laid_out(entropies, width) if entropies else None,
        _at_anchor(batch, state),
        None if batch.sampling_logprobs is None else batch.sampling_logprobs[there],
        log_correction(None if batch.correction is None else batch.correction[there], settings),
        teacher_distributions(batch, rows, state) if whole_taught else None,
        batch.teacher_logprobs[there] if taught and batch.teacher_logprobs is not None else None,
        None if batch.taught is None else to_device([batch.taught[rows, None]], batch.ids.device)[0],
    )  # fmt: skip
    return inputs, laid_out(values, width) if values else None


def log_correction(factor: Tensor | None, settings: Settings) -> Tensor | None:
    """The logarithm of the factor that corrects for the sampler, where the surrogate takes that in."""
    return None if factor is None or not settings.surrogate_row.takes_correction else logarithm(Tensors, factor)


def _at_anchor(batch: Batch, state: State) -> bool:
    """Whether the policy still is the one that the KL in the loss is taken to."""
    if state.settings.kl_placement != "loss" or not state.kl_coef:
        return False
    if state.settings.kl_anchor == "old":
        return batch.passes is not None and not batch.passes.moved and not batch.from_sampler
    return (batch.passes is None or batch.passes.referred) and state.lm.is_reference()


def _joined(parts: list[TrainedMinibatch], places: Tensor) -> TrainedMinibatch:
    """The parts of a minibatch as one: their completions at their `places` in it, their losses added up."""
    back = torch.argsort(places)

    def join(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        if isinstance(values[0], dict):
            return {key: sum(value[key] for value in values) for key in values[0]}
        return None if values[0] is None else torch.cat(values)[back]

    return TrainedMinibatch(**{field.name: join(field.name) for field in fields(TrainedMinibatch)})


def step_metrics(batch: Batch, seen: TrainedMinibatch, settings: Settings) -> dict[str, float]:
    """The losses of `seen.metrics` and what the step's tokens say of it, under TRL's names where it has them.

    What was seen is `brought`, and is read on the CPU.
    """
    rows, (low, high) = seen.rows, settings.clip_range
    mask = in_loss(batch, rows, settings)
    counted = mask.clone()
    if settings.level_row.one_ratio:
        counted[:, 1:] = False
    assert seen.clip_state is not None
    ratio, state = seen.ratio[counted], seen.clip_state[counted]
    low_share, high_share = _mean(state < 0), _mean(state == 1)
    metrics = {
        "loss": seen.metrics["loss"],
        "policy_loss": seen.metrics["policy_loss"],
        "clip_ratio/low_mean": low_share,
        "clip_ratio/high_mean": high_share,
        "clip_ratio/region_mean": low_share + high_share,
        "ratio_max": max(ratio.tolist(), default=1.0),
    }
    if settings.level_row.band:
        (old_logprobs,) = batch.on_host("old_logprobs")
        log_ratio = (seen.logprobs - old_logprobs[rows])[counted]
        metrics["ratio_outside"] = _mean((log_ratio < -low) | (log_ratio > high))
    elif settings.surrogate_row.band:
        metrics["ratio_outside"] = _mean((ratio < 1 - low) | (ratio > 1 + high))
    if settings.delta is not None and settings.surrogate_row.band:
        metrics["clip_ratio/delta_mean"] = _mean(state == 2)
    if settings.surrogate_row.cap:
        (advantages,) = batch.on_host("advantages")
        metrics["cispo_clip_ratio"] = _mean((ratio > high) & (advantages[rows][counted] > 0))
    if seen.distillation is not None:
        metrics["distillation_loss"] = _mean(seen.distillation[_taught(batch, rows, mask)])
    if seen.kl is not None:
        metrics["kl" if settings.kl_anchor == "ref" else "kl_penalty"] = _mean(seen.kl[mask])
    return metrics | seen.metrics


def _taught(batch: Batch, rows: Tensor, mask: Tensor) -> Tensor:
    """bool [R, L], the tokens of `mask` that have a teacher."""
    return mask if batch.taught is None else mask & batch.taught[rows, None]


def _mean(values: Tensor) -> float:
    """Of however many there are; 0 where every token is left out."""
    return values.sum().item() / max(len(values), 1)
