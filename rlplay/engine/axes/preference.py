"""Losses of preferred answers: how much better the chosen completion has to score than the rejected one.

Pure functions. P pairs, N completions; one loss each, the mean is minimised. A *gap* is chosen − rejected, of
log-ratios to the reference ℓ − ℓʳ or of plain log-probabilities ℓ, summed over a completion's tokens or averaged over
them: each function says which. Names and formulas are those of TRL's trainers but where a docstring says otherwise.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

_LOG_HALF = -0.6931471805599453


def sigmoid(gap: Tensor, beta: float, label_smoothing: float = 0.0) -> Tensor:
    """−(1 − ε) log σ(β·gap) − ε log σ(−β·gap): [P] -> [P].

    Of summed log-ratios it is DPO (Rafailov et al. 2023, arXiv:2305.18290), with ε > 0 conservative DPO (Mitchell 2023,
    "A note on DPO with noisy preferences"; TRL's DPOTrainer has no ε here). Of summed log-probabilities it is CPO's
    preference term (Xu et al. 2024, arXiv:2401.08417).
    """
    return -(1 - label_smoothing) * logsigmoid(beta * gap) - label_smoothing * logsigmoid(-beta * gap)


def robust(gap: Tensor, beta: float, label_smoothing: float) -> Tensor:
    """DPO's loss as it would be in expectation if no label had been flipped (Chowdhury et al. 2024, arXiv:2403.00409).

    ((1 − ε)·L(gap) − ε·L(−gap)) / (1 − 2ε) with L = −log σ(β·gap), `gap` [P] of summed log-ratios, and ε < ½ the share
    of flipped labels. May be negative.
    """
    kept, flipped = -logsigmoid(beta * gap), -logsigmoid(-beta * gap)
    return ((1 - label_smoothing) * kept - label_smoothing * flipped) / (1 - 2 * label_smoothing)


def hinge(gap: Tensor, beta: float) -> Tensor:
    """max(0, 1 − β·gap), SLiC's margin on summed log-ratios (Zhao et al. 2023, arXiv:2305.10425): [P] -> [P]."""
    return (1 - beta * gap).relu()


def ipo(mean_gap: Tensor, beta: float) -> Tensor:
    """(gap − 1/(2β))², of log-ratios averaged over tokens: a finite target (Azar et al. 2023, arXiv:2310.12036)."""
    return (mean_gap - 1 / (2 * beta)) ** 2


def kto(log_ratios: Tensor, desirable: Tensor, baseline: Tensor, beta: float) -> Tensor:
    """1 − σ(β(c − z)) for a desirable completion, 1 − σ(β(z − r)) for another.

    KTO (Ethayarajh et al. 2024, arXiv:2402.01306). `log_ratios` [N] are summed over tokens, `desirable` bool [N];
    `baseline` is z, the KL to the reference as `kto_baseline` estimates it. Needs no pairs. Returns [N], unweighted.
    """
    signed = torch.where(desirable, log_ratios - baseline, baseline - log_ratios)
    return 1 - (beta * signed).sigmoid()


def kto_baseline(mismatched_log_ratios: Tensor) -> Tensor:
    """KTO's z: the mean log-ratio of completions put after *other* prompts, at least 0, without gradient: [N] -> []."""
    return mismatched_log_ratios.mean().clamp(min=0).detach()


def simpo(mean_gap: Tensor, beta: float, gamma: float, label_smoothing: float = 0.0) -> Tensor:
    """−log σ(β·gap − γ), of mean log-probabilities of a token, no reference (Meng et al. 2024, arXiv:2405.14734)."""
    return sigmoid(mean_gap - gamma / beta, beta, label_smoothing)


def log_odds(mean_logprobs: Tensor) -> Tensor:
    """log(p/(1 − p)) of p = exp(mean log-probability of a completion's tokens), the odds that ORPO compares: [P]."""
    rest = torch.where(
        mean_logprobs < _LOG_HALF, torch.log1p(-mean_logprobs.exp()), torch.log(-torch.expm1(mean_logprobs))
    )
    return mean_logprobs - rest


def orpo(chosen_mean: Tensor, rejected_mean: Tensor, beta: float) -> Tensor:
    """−β log σ(log odds(chosen) − log odds(rejected)) (Hong et al. 2024, arXiv:2403.07691, with β its λ): [P] -> [P].

    To this the likelihood term `nll` of the chosen completions is added. TRL counts the prompts' tokens in it too; here
    prompts are read and never imitated.
    """
    return -beta * logsigmoid(log_odds(chosen_mean) - log_odds(rejected_mean))


def nll(logprobs: Tensor, mask: Tensor) -> Tensor:
    """Supervised fine-tuning: mean negative log-likelihood over all tokens of the mask, [P, L] -> a scalar in nats."""
    return -(logprobs * mask).sum() / mask.sum().clamp(min=1)


def bradley_terry(chosen: Tensor, rejected: Tensor, margin: Tensor, center: float) -> Tensor:
    """−log σ(s_c − s_r − m) + center·(s_c + s_r)² of a reward model's scores: three [P] -> [P].

    The probability that the chosen one wins (Bradley and Terry 1952, doi:10.1093/biomet/39.3-4.324), a margin m for
    pairs that differ clearly (Llama 2, arXiv:2307.09288), and a pull of the scores towards mean 0
    (Eisenstein et al. 2023, arXiv:2312.09244, equation 2).
    """
    return -logsigmoid(chosen - rejected - margin) + center * (chosen + rejected) ** 2
