"""The loss of some pairs, as the settings combine it, and the reward that it implies for every completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES, imitation_row, mixture
from rlplay.algorithms.settings import LossType, Settings
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device

Pairing = tuple[Tensor, Tensor]
"""The rows of the chosen completions and those of the others, int64 [P] each; none of the latter for demonstrations."""


@dataclass
class Compared:
    """`loss` and the `metrics` are scalars; `rewards` [R] are the completions' implicit rewards, None where the loss
    implies none; `weights` [R] those of their pairs, None where all count the same."""

    loss: Tensor
    rewards: Tensor | None
    metrics: dict[str, Tensor]
    weights: Tensor | None = None


def with_reference(loss_type: LossType) -> bool:
    """Whether a loss compares the policy with the reference."""
    return loss_type in PAIR_LOSSES and PAIR_LOSSES[loss_type].with_reference


def token_scores(
    settings: Settings, logprobs: Tensor, ref_logprobs: Tensor | None, mask: Tensor, pairing: Pairing
) -> Tensor | None:
    """What each token adds to its completion's score before that is bent, [R, L]; times β it is its share of the
    implicit reward.

    As in what TRL logs as rewards; None where a loss scores no answer.
    """
    loss = PAIR_LOSSES.get(settings.loss_type)
    if loss is None or loss.share is None:
        return None
    known: dict[str, Any] = {"logprobs": logprobs, "ref_logprobs": ref_logprobs, "mask": mask}
    known["beyond"] = None if settings.ld_alpha is None else _beyond(mask, pairing)
    found: Tensor = call_choice(loss.share, Tensors(logprobs), known, settings) * mask
    return found


def _beyond(mask: Tensor, pairing: Pairing) -> Tensor:
    """Which tokens are beyond the length of the shorter answer of their pair, bool [R, L]."""
    chosen, other = pairing
    lengths = mask.sum(-1)
    shared = lengths.clone()
    shared[chosen] = shared[other] = torch.minimum(lengths[chosen], lengths[other])
    return mask.cumsum(-1) > shared[:, None]


def pair_loss(
    logprobs: Tensor,
    ref_logprobs: Tensor | None,
    mask: Tensor,
    chosen: Tensor,
    kto_baseline: Tensor | None,
    settings: Settings,
    weights: Tensor | None = None,
) -> Compared:
    """The loss of R completions [R, L], R/2 pairs: the i-th `chosen` one (bool [R], on the CPU) is compared with the
    i-th other. `weights` [R] are those of the completions, of which a pair has the product.

    For supervised fine-tuning the others may be missing.
    """
    places = [chosen.nonzero().flatten(), (~chosen).nonzero().flatten()]
    preferred, other, is_chosen = to_device([*places, chosen], logprobs.device)
    imitation = imitated(logprobs[preferred], mask[preferred], settings.loss_type)
    per_token = token_scores(settings, logprobs, ref_logprobs, mask, (preferred, other))
    if per_token is None:
        return Compared(imitation, None, {})
    lead, xp, metrics = PAIR_LOSSES[settings.loss_type], Tensors(logprobs), dict[str, Tensor]()
    totals = scores = per_token.sum(-1)
    if lead.rescaled is not None:
        scores = call_choice(lead.rescaled, xp, {"total": totals[:, None]}, settings).squeeze(-1)
    compared = _quantities(scores, mask, preferred, other)
    compared |= {"chosen": is_chosen, "kto_baseline": kto_baseline}
    if any("policy_gap" in PAIR_LOSSES[name].reads for name in mixture(settings) if name in PAIR_LOSSES):
        alone = token_scores(settings, logprobs, torch.zeros_like(logprobs), mask, (preferred, other))
        assert alone is not None
        own = alone.sum(-1)
        compared["policy_gap"] = own[preferred] - own[other]
        compared["ref_gap"] = (own - totals)[preferred] - (own - totals)[other]
    of_pair = None if weights is None else weights[preferred] * weights[other]
    loss, imitating = logprobs.new_zeros(()), lead.imitation(settings)
    for name, weight in mixture(settings).items():
        if name in IMITATIONS:
            imitating += weight
            continue
        each = call_choice(PAIR_LOSSES[name].compute, xp, compared, settings)
        loss = loss + weight * (each if of_pair is None else each * of_pair).mean()
    if kto_baseline is not None:
        metrics["kto/kl"] = kto_baseline
    if lead.of_odds:
        ahead = compared["gap"].detach()
        metrics |= {"log_odds_chosen": ahead.mean(), "log_odds_ratio": logsigmoid(ahead).mean()}
    if imitating:
        loss = loss + imitating * (imitation if of_pair is None else imitation * of_pair.mean())
        metrics["nll_loss"] = imitation.detach()
    rewards = settings.beta * (scores if lead.rewards_score else totals).detach()
    return Compared(loss, rewards, metrics, None if of_pair is None else _of_both(of_pair, preferred, other))


def _of_both(of_pair: Tensor, preferred: Tensor, other: Tensor) -> Tensor:
    """What a pair has, for both of its completions: [P] -> [R]."""
    found = of_pair.new_zeros(2 * len(of_pair))
    found[preferred] = found[other] = of_pair
    return found


def _quantities(scores: Tensor, mask: Tensor, preferred: Tensor, other: Tensor) -> dict[str, Any]:
    """What losses read of the scores [R]."""
    if len(preferred) != len(other):  # of single answers there may be more of one kind
        return {"score": scores}
    good, bad = scores[preferred], scores[other]
    means = scores / mask.sum(-1).clamp(min=1)
    return {
        "score": scores, "chosen_score": good, "rejected_score": bad, "gap": good - bad,
        "mean_gap": means[preferred] - means[other],
    }  # fmt: skip


def imitated(logprobs: Tensor, mask: Tensor, loss_type: str) -> Tensor:
    """Supervised fine-tuning: the mean over the mask's tokens of what each of them adds, [P, L] -> a scalar in nats."""
    each: Tensor = call_choice(imitation_row(loss_type).compute, Tensors(logprobs), {"logprobs": logprobs}, None)
    return (each * mask).sum() / mask.sum().clamp(min=1)


def kto_baseline(mismatched_log_ratios: Tensor) -> Tensor:
    """KTO's z: the mean log-ratio of completions put after *other* prompts, at least 0, without gradient: [N] -> []."""
    return mismatched_log_ratios.mean().clamp(min=0).detach()
