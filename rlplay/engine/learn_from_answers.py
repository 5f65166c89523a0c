"""Learning from which of two answers is better, or from an answer to imitate: one update, phase by phase.

A sibling of the policy gradient in `loop.py`: the same phases, the same records. Nothing is sampled to be rewarded;
answers are given, and the gradient of the loss of `pair_loss.py` takes the place of rewards and credit.
"""

from __future__ import annotations

from collections.abc import Generator

import torch
from torch import Tensor

from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import Settings
from rlplay.engine import ranks
from rlplay.engine.batch import Batch, TokenBatch
from rlplay.engine.credit_phase import by_reference
from rlplay.engine.optimize import TrainedMinibatch
from rlplay.engine.pair_loss import Compared, kto_baseline, pair_loss, token_scores, with_reference
from rlplay.engine.passes import backpropagated, rows_at_once, score_tokens, token_logprobs
from rlplay.engine.preference_pairs import PairRows, Unlabelled, draw_pairs, label, label_metrics, optimize_pairs
from rlplay.engine.sample import Sampling
from rlplay.engine.state import RunPlan, State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import group_statistics
from rlplay.engine.update_summary import finished, step_means
from rlplay.trace.records import AnyRecord, Credited, Finished, Scored


def learn_from_answers(state: State, plan: RunPlan) -> Generator[Sampling | Unlabelled | AnyRecord, None, Finished]:
    """One update: draw pairs, label them, give credit, step, look again. Raises Halt as `optimize` does."""
    batch, same = yield from draw_pairs(state, plan)
    scored, pairs = yield from label(batch, same, state, plan)
    yield scored
    yield _credit(batch, scored, pairs, state)
    yield from optimize_pairs(batch, pairs, lambda part: _gradients(batch, pairs, part, state), state, plan.seed)
    return finished(batch, step_means(batch) | label_metrics(scored) | _reading(batch, pairs), state)


def _credit(batch: Batch, scored: Scored, pairs: PairRows, state: State) -> Credited:
    """What the loss takes for reward, and its gradient at each token, before any step is taken."""
    lm, settings, mask = state.lm, state.settings, batch.mask
    ref_top = None
    if with_reference(settings.loss_type):
        with spent_on("reference"):
            batch.ref_logprobs, ref_top = by_reference(lm, batch)
    every = torch.arange(len(pairs.chosen), device=lm.device)
    rows = pairs.rows(every)
    batch.advantages = torch.zeros_like(batch.old_logprobs)
    if len(every):
        gradient, _ = _derivative(batch, pairs, every, batch.old_logprobs[rows].requires_grad_(), state)
        batch.advantages[rows] = -gradient * mask[rows].sum()
    scores = token_scores(settings.loss_type, batch.old_logprobs, batch.ref_logprobs, mask)
    labels = torch.from_numpy(scored.rewards).to(lm.device)
    mean, std = group_statistics(labels, batch.group, len(batch.prompts.ids))
    return Credited(
        update=batch.update,
        advantages=batch.flat(batch.advantages),
        ref_logprobs=None if batch.ref_logprobs is None else batch.flat(batch.ref_logprobs),
        ref_top_logprobs=None if ref_top is None else batch.flat(ref_top),
        group_mean=mean.cpu().numpy(),
        group_std=std.cpu().numpy(),
        implicit_rewards=None if scores is None else batch.flat(settings.beta * scores),
    )


def _gradients(batch: Batch, pairs: PairRows, part: Tensor, state: State) -> TrainedMinibatch:
    """Fill the parameters' gradients with those of the loss of the pairs `part`."""
    lm, rows = state.lm, pairs.rows(part)
    mask = batch.mask[rows]
    logprobs, gradient, compared = backpropagated(
        rows,
        rows_at_once(lm, batch.ids.shape[1]),
        lambda piece: token_logprobs(lm, lm.policy, batch.tokens(piece), batch.temperature),
        lambda now: _derivative(batch, pairs, part, now, state),
    )
    ranks.add_gradients(state.parameters.values())
    ratio = torch.where(mask, logprobs - batch.old_logprobs[rows], 0.0).exp()
    metrics = {"loss": compared.loss.item(), **compared.metrics}
    metrics |= _likelihoods(logprobs, mask, len(part), state.settings)
    margins = None
    if compared.rewards is not None:
        won, lost = compared.rewards[: len(part)], compared.rewards[len(part) :]
        margins = won - lost
        metrics |= _margin_metrics(won, lost)
    return TrainedMinibatch(rows, logprobs, ratio, gradient, metrics, margins=margins)


def _derivative(batch: Batch, pairs: PairRows, part: Tensor, logprobs: Tensor, state: State) -> tuple[Tensor, Compared]:
    """The derivative of the loss of the pairs `part` by the log-probabilities [R, L] of their tokens, and the loss."""
    rows, settings = pairs.rows(part), state.settings
    reference = None if batch.ref_logprobs is None else batch.ref_logprobs[rows]
    if reference is not None and state.lm.is_reference():
        reference = logprobs.detach()
    chosen = torch.arange(len(rows), device=rows.device) < len(part)
    baseline = _kto_baseline(batch, pairs, part, state) if settings.loss_type == "kto" else None
    compared = pair_loss(logprobs, reference, batch.mask[rows], chosen, baseline, settings)
    return torch.autograd.grad(compared.loss, logprobs)[0], compared


@spent_on("forward")
def _kto_baseline(batch: Batch, pairs: PairRows, part: Tensor, state: State) -> Tensor:
    """KTO's z: each answer of the pairs `part` read as an answer to the batch's next prompt, labelled or not."""
    lm, rows = state.lm, pairs.rows(part)
    if lm.is_reference():
        return torch.zeros((), device=lm.device)
    others = (batch.group[rows] + 1) % len(batch.prompts.ids)
    mismatched = TokenBatch(batch.prompts, others, batch.ids[rows], batch.lengths[rows])
    nothing = batch.top_ids[rows][..., :0]
    own, ref = (
        score_tokens(lm, model, mismatched, nothing, batch.temperature)[0] for model in (lm.policy, lm.reference)
    )
    return kto_baseline(((own - ref) * batch.mask[rows]).sum(-1))


def _likelihoods(logprobs: Tensor, mask: Tensor, pairs: int, settings: Settings) -> dict[str, float]:
    """Mean log-probability of chosen and rejected completions; of their tokens where the loss averages."""
    whole = (logprobs * mask).sum(-1)
    loss = PAIR_LOSSES.get(settings.loss_type)
    logps = whole / mask.sum(-1) if loss is not None and loss.averages else whole
    metrics = {"logps/chosen": logps[:pairs].mean().item()}
    return metrics | ({"logps/rejected": logps[pairs:].mean().item()} if len(logps) > pairs else {})


def _margin_metrics(won: Tensor, lost: Tensor) -> dict[str, float]:
    """Implicit rewards of chosen and rejected completions, [P] each, under TRL's names."""
    return {
        "rewards/chosen": won.mean().item(),
        "rewards/rejected": lost.mean().item(),
        "rewards/margins": (won - lost).mean().item(),
        "rewards/accuracies": (won > lost).float().mean().item(),
    }


def _reading(batch: Batch, pairs: PairRows) -> dict[str, float]:
    """How the policy read the answers before the update: its entropy, and how often its likeliest token was theirs."""
    metrics = {"entropy": batch.entropy[batch.mask].mean().item()}
    if len(pairs.chosen):
        likeliest = (batch.top_ids[..., 0] == batch.ids)[pairs.chosen]
        metrics["mean_token_accuracy"] = likeliest[batch.mask[pairs.chosen]].float().mean().item()
    return metrics
