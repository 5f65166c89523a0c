"""The loss of some pairs, as the settings combine it, and the reward that it implies for every completion."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from rlplay.algorithms.settings import Settings
from rlplay.engine.axes import preference

WITH_REFERENCE = ("sigmoid", "hinge", "ipo", "robust", "kto")
"""The losses that compare with the reference; the others look at the policy alone."""

PER_TOKEN = ("simpo", "orpo")
"""The losses that score a completion by the mean over its tokens, where the others take the sum."""


@dataclass
class Compared:
    """`loss` is a scalar; `rewards` [R] are the completions' implicit rewards, None where the loss implies none."""

    loss: Tensor
    rewards: Tensor | None
    metrics: dict[str, float]


def token_scores(loss_type: str, logprobs: Tensor, ref_logprobs: Tensor | None, mask: Tensor) -> Tensor | None:
    """What each token adds to its completion's score, [R, L]; times β it is its share of the implicit reward.

    ℓ − ℓʳ where the loss has a reference, ℓ for CPO, ℓ/n for SimPO and ORPO, as in what TRL logs as rewards; None for
    supervised fine-tuning, which compares nothing.
    """
    if loss_type == "sft":
        return None
    if loss_type in WITH_REFERENCE:
        assert ref_logprobs is not None
        return (logprobs - ref_logprobs) * mask
    return logprobs * mask / (mask.sum(-1, keepdim=True) if loss_type in PER_TOKEN else 1)


def pair_loss(
    logprobs: Tensor,
    ref_logprobs: Tensor | None,
    mask: Tensor,
    chosen: Tensor,
    kto_baseline: Tensor | None,
    settings: Settings,
) -> Compared:
    """The loss of R completions [R, L], R/2 pairs: the i-th `chosen` one (bool [R]) is compared with the i-th other.

    For supervised fine-tuning the others may be missing.
    """
    imitation = preference.nll(logprobs[chosen], mask[chosen])
    per_token = token_scores(settings.loss_type, logprobs, ref_logprobs, mask)
    if per_token is None:
        return Compared(imitation, None, {})
    scores, metrics = per_token.sum(-1), {}
    if settings.loss_type == "kto":
        assert kto_baseline is not None
        losses = preference.kto(scores, chosen, kto_baseline, settings.beta)
        losses = losses * torch.where(chosen, settings.desirable_weight, settings.undesirable_weight)
        metrics["kto/kl"] = kto_baseline.item()
    else:
        losses = _compared(scores, mask.sum(-1), chosen, settings)
    loss = losses.mean()
    if settings.loss_type == "orpo":
        log_odds = preference.log_odds(scores[chosen].detach()) - preference.log_odds(scores[~chosen].detach())
        metrics |= {"log_odds_chosen": log_odds.mean().item(), "log_odds_ratio": logsigmoid(log_odds).mean().item()}
    if weight := {"orpo": 1.0, "cpo": settings.cpo_alpha, "simpo": settings.cpo_alpha}.get(settings.loss_type):
        loss = loss + weight * imitation
        metrics["nll_loss"] = imitation.item()
    return Compared(loss, settings.beta * scores.detach(), metrics)


def _compared(scores: Tensor, lengths: Tensor, chosen: Tensor, settings: Settings) -> Tensor:
    """The losses [P] of pairs whose scores [R] stand beside their lengths [R]."""
    beta, smoothing = settings.beta, settings.label_smoothing
    if settings.loss_type == "ipo":
        scores = scores / lengths
    gap = scores[chosen] - scores[~chosen]
    match settings.loss_type:
        case "robust":
            return preference.robust(gap, beta, smoothing)
        case "hinge":
            return preference.hinge(gap, beta)
        case "ipo":
            return preference.ipo(gap, beta)
        case "simpo":
            return preference.simpo(gap, beta, settings.simpo_gamma, smoothing)
        case "orpo":
            return preference.orpo(scores[chosen], scores[~chosen], beta)
        case _:  # sigmoid, of log-ratios; CPO, of log-probabilities
            return preference.sigmoid(gap, beta, smoothing)
