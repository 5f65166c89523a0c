"""Learning from which of two answers is better, or from an answer to imitate: one update, phase by phase.

A sibling of the policy gradient in `loop.py`: the same phases, the same records. Nothing is sampled to be rewarded;
answers are given, and the gradient of the loss of `pair_loss.py` takes the place of rewards and credit.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.answer_weights import answer_weights
from rlplay.engine.batch import Batch
from rlplay.engine.credit_phase import by_reference
from rlplay.engine.optimize import TrainedMinibatch, brought
from rlplay.engine.pair_loss import Compared, kto_baseline, pair_loss, token_scores, with_reference
from rlplay.engine.passes import backpropagated, rows_at_once, score_tokens, token_logprobs
from rlplay.engine.preference_pairs import (
    ROUNDING,
    PairRows,
    Unlabelled,
    draw_pairs,
    label,
    label_metrics,
    optimize_pairs,
)
from rlplay.engine.routers import balance, with_balance
from rlplay.engine.sample import Sampling
from rlplay.engine.state import RunPlan, State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import group_statistics
from rlplay.engine.transfer import to_device
from rlplay.engine.update_summary import finished, of_steps
from rlplay.engine.withheld import withhold, without_withheld
from rlplay.trace.records import AnyRecord, Credited, Finished, Scored


def learn_from_answers(state: State, plan: RunPlan) -> Generator[Sampling | Unlabelled | AnyRecord, None, Finished]:
    """One update: draw pairs, label them, give credit, step, look again. Raises Halt as `optimize` does."""
    batch, same = yield from draw_pairs(state, plan)
    scored, pairs = yield from label(batch, same, state, plan)
    state.batch = batch
    batch.pairs = (pairs.chosen, pairs.rejected) if len(pairs.rejected) else None
    yield scored
    yield _credit(batch, scored, pairs, state)
    yield from optimize_pairs(batch, pairs, lambda part: pair_gradients(batch, pairs, part, state), state, plan.seed)
    return finished(batch, of_steps(batch) | label_metrics(scored) | _reading(batch, pairs), state)


def _credit(batch: Batch, scored: Scored, pairs: PairRows, state: State) -> Credited:
    """What the loss takes for reward, and its gradient at each token, before any step is taken."""
    lm, settings, mask = state.lm, state.settings, batch.mask
    withhold(batch, state)
    ref_top = None
    if with_reference(settings.loss_type):
        with spent_on("reference"):
            batch.ref_logprobs, ref_top = by_reference(lm, batch)
    every = torch.arange(len(pairs.chosen))
    batch.advantages = torch.zeros_like(batch.old_logprobs)
    if len(every):
        part = _compared(batch, pairs, every)
        gradient, _ = _derivative(batch, part, batch.old_logprobs[part.there].requires_grad_(), state)
        batch.advantages[part.there] = -gradient * part.mask.sum()
    pairing = to_device([pairs.chosen, pairs.rejected], mask.device)
    scores = token_scores(settings, batch.old_logprobs, batch.ref_logprobs, mask, (pairing[0], pairing[1]))
    mean, std = group_statistics(torch.from_numpy(scored.rewards), batch.on_host("group")[0], len(batch.prompts.ids))
    tokens = {
        "advantages": batch.advantages, "ref_logprobs": batch.ref_logprobs, "ref_top_logprobs": ref_top,
        "implicit_rewards": None if scores is None else settings.beta * scores,
    }  # fmt: skip
    return Credited(update=batch.update, group_mean=mean.numpy(), group_std=std.numpy(), **batch.flat_each(tokens))


@dataclass(frozen=True)
class _Part:
    """Some pairs of a batch: their completions `rows` [R], chosen ones first, on the CPU and `there`, on the device;
    `mask` bool [R, L]; which of them are `chosen`, bool [R] on the CPU."""

    rows: Tensor
    there: Tensor
    mask: Tensor
    chosen: Tensor


def _compared(batch: Batch, pairs: PairRows, part: Tensor) -> _Part:
    """The pairs `part`, int64 on the CPU."""
    rows = pairs.rows(part)
    there, mask = to_device([rows, batch.known_masks[0][rows]], batch.ids.device)
    return _Part(rows, there, mask, torch.arange(len(rows)) < len(part))


def pair_gradients(batch: Batch, pairs: PairRows, pieces: Tensor, state: State) -> TrainedMinibatch:
    """Fill the parameters' gradients with those of the loss of the pairs `pieces`, int64 on the CPU."""
    lm, part = state.lm, _compared(batch, pairs, pieces)
    logprobs, gradient, compared = backpropagated(
        part.rows,
        rows_at_once(lm, batch.ids.shape[1]),
        lambda piece: token_logprobs(lm, lm.policy, batch.tokens(piece), batch.temperature),
        lambda now: _derivative(batch, part, now, state),
    )
    routed = balance(batch, part.rows, state)
    ranks.add_gradients(state.parameters.values())
    ratio = torch.where(part.mask, logprobs - batch.old_logprobs[part.there], 0.0).exp()
    metrics = {"loss": compared.loss.detach(), **compared.metrics}
    metrics |= _likelihoods(logprobs, part.mask, len(pieces), state.settings)
    margins = None
    if compared.rewards is not None:
        won, lost = compared.rewards[: len(pieces)], compared.rewards[len(pieces) :]
        margins = won - lost
        metrics |= _margin_metrics(won, lost)
    weights = None if compared.weights is None else compared.weights[:, None] * part.mask
    seen = TrainedMinibatch(part.rows, logprobs, ratio, gradient, metrics, weights=weights, margins=margins)
    found = brought([seen])[0]
    found.metrics = with_balance(found.metrics, routed, state.settings)
    return found


def _derivative(batch: Batch, part: _Part, logprobs: Tensor, state: State) -> tuple[Tensor, Compared]:
    """The derivative of the loss of some pairs by the log-probabilities [R, L] of their tokens, and the loss."""
    settings = state.settings
    reference = None if batch.ref_logprobs is None else batch.ref_logprobs[part.there]
    same = reference is not None and state.lm.is_reference()
    if same:
        reference = logprobs.detach()
    loss, baseline, weights = PAIR_LOSSES.get(settings.loss_type), None, None
    if loss is not None and "kto_baseline" in loss.reads:
        baseline = _kto_baseline(batch, part, state, same)
    if loss is not None and loss.mixes and settings.use_weighting:
        weights = answer_weights(state.lm, batch.tokens(part.rows), logprobs, part.mask, batch.temperature)
    compared = pair_loss(logprobs, reference, part.mask, part.chosen, baseline, settings, weights)
    return without_withheld(torch.autograd.grad(compared.loss, logprobs)[0], batch, part.rows), compared


@spent_on("forward")
def _kto_baseline(batch: Batch, part: _Part, state: State, same: bool) -> Tensor:
    """KTO's z: each answer of some pairs read as an answer to the batch's next prompt, labelled or not; 0 where policy
    and reference are the `same`."""
    lm, there = state.lm, part.there
    if same:
        return torch.zeros((), device=lm.device)
    own, count = batch.tokens(part.rows), len(batch.prompts.ids)
    others = replace(own, group=(own.group + 1) % count, given=replace(own.known, group=(own.known.group + 1) % count))
    nothing = batch.top_ids[there][..., :0]
    ours, ref = (score_tokens(lm, model, others, nothing, batch.temperature)[0] for model in (lm.policy, lm.reference))
    return kto_baseline(((ours - ref) * part.mask).sum(-1))


def _likelihoods(logprobs: Tensor, mask: Tensor, pairs: int, settings: Settings) -> dict[str, Tensor]:
    """Mean log-probability of chosen and rejected completions; of their tokens where the loss averages."""
    whole = (logprobs * mask).sum(-1)
    loss = PAIR_LOSSES.get(settings.loss_type)
    logps = whole / mask.sum(-1) if loss is not None and loss.averages else whole
    metrics = {"logps/chosen": logps[:pairs].mean()}
    return metrics | ({"logps/rejected": logps[pairs:].mean()} if len(logps) > pairs else {})


def _margin_metrics(won: Tensor, lost: Tensor) -> dict[str, Tensor]:
    """Implicit rewards of chosen and rejected completions, [P] each, under TRL's names.

    A margin that may be rounding alone, as where the policy still is the reference, is a tie: 0 for the accuracy.
    """
    ahead = (won > lost) & ~torch.isclose(won, lost, rtol=ROUNDING, atol=ROUNDING)
    return {
        "rewards/chosen": won.mean(),
        "rewards/rejected": lost.mean(),
        "rewards/margins": (won - lost).mean(),
        "rewards/accuracies": ahead.float().mean(),
    }


def _reading(batch: Batch, pairs: PairRows) -> dict[str, float]:
    """How the policy read the answers before the update: its entropy, and how often its likeliest token was theirs."""
    mask, (entropy, top_ids, ids) = batch.known_masks[0], batch.on_host("entropy", "top_ids", "ids")
    metrics = {"entropy": entropy[mask].mean().item()}
    if len(pairs.chosen):
        likeliest = (top_ids[..., 0] == ids)[pairs.chosen]
        metrics["mean_token_accuracy"] = likeliest[mask[pairs.chosen]].float().mean().item()
    return metrics
