"""The loss of some pairs, as the settings combine it, and the reward that it implies for every completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn.functional import logsigmoid

from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.pair_losses import PAIR_LOSSES
from rlplay.algorithms.settings import LossType, Settings
from rlplay.engine.tensors import Tensors
from rlplay.engine.transfer import to_device


@dataclass
class Compared:
    """`loss` and the `metrics` are scalars; `rewards` [R] are the completions' implicit rewards, None where the loss
    implies none."""

    loss: Tensor
    rewards: Tensor | None
    metrics: dict[str, Tensor]


def with_reference(loss_type: LossType) -> bool:
    """Whether a loss compares the policy with the reference."""
    return loss_type in PAIR_LOSSES and PAIR_LOSSES[loss_type].with_reference


def token_scores(loss_type: LossType, logprobs: Tensor, ref_logprobs: Tensor | None, mask: Tensor) -> Tensor | None:
    """What each token adds to its completion's score, [R, L]; times β it is its share of the implicit reward.

    As in what TRL logs as rewards; None where a loss scores no answer.
    """
    loss = PAIR_LOSSES.get(loss_type)
    if loss is None or loss.share is None:
        return None
    known: dict[str, Any] = {"logprobs": logprobs, "ref_logprobs": ref_logprobs, "mask": mask}
    found: Tensor = call_choice(loss.share, Tensors, known, None) * mask
    return found


def pair_loss(
    logprobs: Tensor,
    ref_logprobs: Tensor | None,
    mask: Tensor,
    chosen: Tensor,
    kto_baseline: Tensor | None,
    settings: Settings,
) -> Compared:
    """The loss of R completions [R, L], R/2 pairs: the i-th `chosen` one (bool [R], on the CPU) is compared with the
    i-th other.

    For supervised fine-tuning the others may be missing.
    """
    places = [chosen.nonzero().flatten(), (~chosen).nonzero().flatten()]
    preferred, other, is_chosen = to_device([*places, chosen], logprobs.device)
    imitation = nll(logprobs[preferred], mask[preferred])
    per_token = token_scores(settings.loss_type, logprobs, ref_logprobs, mask)
    if per_token is None:
        return Compared(imitation, None, {})
    totals, metrics = per_token.sum(-1), dict[str, Tensor]()
    loss_type, scores = PAIR_LOSSES[settings.loss_type], totals
    if loss_type.rescaled is not None:
        known = {"total": totals[:, None], "mask": mask}
        scores = call_choice(loss_type.rescaled, Tensors(totals), known, settings).squeeze(-1)
    # KTO takes each answer alone, and may have more of one kind.
    gap = scores if settings.loss_type == "kto" else scores[preferred] - scores[other]
    compared = {"gap": gap, "score": scores, "chosen": is_chosen, "kto_baseline": kto_baseline}
    loss = call_choice(loss_type.compute, Tensors(totals), compared, settings).mean()
    if kto_baseline is not None:
        metrics["kto/kl"] = kto_baseline
    if settings.loss_type == "orpo":
        ahead = gap.detach()
        metrics |= {"log_odds_chosen": ahead.mean(), "log_odds_ratio": logsigmoid(ahead).mean()}
    if weight := loss_type.imitation(settings):
        loss = loss + weight * imitation
        metrics["nll_loss"] = imitation.detach()
    return Compared(loss, settings.beta * totals.detach(), metrics)


def nll(logprobs: Tensor, mask: Tensor) -> Tensor:
    """Supervised fine-tuning: mean negative log-likelihood over all tokens of the mask, [P, L] -> a scalar in nats."""
    return -(logprobs * mask).sum() / mask.sum().clamp(min=1)


def kto_baseline(mismatched_log_ratios: Tensor) -> Tensor:
    """KTO's z: the mean log-ratio of completions put after *other* prompts, at least 0, without gradient: [N] -> []."""
    return mismatched_log_ratios.mean().clamp(min=0).detach()
