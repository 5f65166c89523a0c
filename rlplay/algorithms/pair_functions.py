"""The loss of a pair, of its scores. Names and formulas are TRL's unless a docstring says otherwise.

`gap` Δ is the chosen answer's score minus the rejected one's, `mean_gap` Δₙ the same of scores divided by the answers'
numbers of tokens, `policy_gap` g and `ref_gap` r that of log-probabilities under policy and reference; all are [P].
"""

from __future__ import annotations

import math
from typing import Any

from rlplay.trace.numbers import compact


def sigmoid(xp: Any, gap: Any, beta: float, label_smoothing: float) -> Any:
    """−(1 − ε) log σ(β·Δ) − ε log σ(−β·Δ).

    On log-ratios it is DPO (Rafailov et al. 2023, arXiv:2305.18290), with ε > 0 conservative DPO (Mitchell 2023,
    "A note on DPO with noisy preferences"; TRL's DPOTrainer has no ε here). On log-probabilities it is CPO's preference
    term (Xu et al. 2024, arXiv:2401.08417).
    """
    return -(1 - label_smoothing) * xp.logsigmoid(beta * gap) - label_smoothing * xp.logsigmoid(-beta * gap)


def sigmoid_norm(xp: Any, mean_gap: Any, beta: float) -> Any:
    """DPO on log-ratios averaged over tokens (Lambert et al. 2024, arXiv:2411.15124, section 5)."""
    return -xp.logsigmoid(beta * mean_gap)


def robust(xp: Any, gap: Any, beta: float, label_smoothing: float) -> Any:
    """DPO's loss as it would be in expectation if no label had been flipped (Chowdhury et al. 2024, arXiv:2403.00409).

    ε < ½ is the share of flipped labels. May be negative.
    """
    kept, flipped = -xp.logsigmoid(beta * gap), -xp.logsigmoid(-beta * gap)
    return ((1 - label_smoothing) * kept - label_smoothing * flipped) / (1 - 2 * label_smoothing)


def hinge(xp: Any, gap: Any, beta: float) -> Any:
    """SLiC's margin (Zhao et al. 2023, arXiv:2305.10425)."""
    return xp.relu(1 - beta * gap)


def ipo(xp: Any, mean_gap: Any, beta: float) -> Any:  # noqa: ARG001
    """A finite target for log-ratios averaged over tokens (Azar et al. 2023, arXiv:2310.12036)."""
    return (mean_gap - 1 / (2 * beta)) ** 2


def ipo_of_likelihoods(xp: Any, gap: Any, beta: float) -> Any:
    """The same of scores that are means already, as CPOTrainer has it."""
    return ipo(xp, gap, beta)


def exo_pair(xp: Any, gap: Any, beta: float, label_smoothing: float) -> Any:
    """KL(q ‖ p) of how the policy prefers, q = σ(β·Δ), to how the label does, p = 1 − ε (Ji et al. 2024,
    arXiv:2402.00856, equation 16). ε is above 0."""
    x = beta * gap
    ahead = xp.let("q", xp.sigmoid(x))
    sure = xp.let(f"log {compact(1 - label_smoothing)}", math.log1p(-label_smoothing))
    rare = math.log(label_smoothing) if label_smoothing > 0 else -math.inf
    unsure = xp.let(f"log {compact(label_smoothing)}", rare)
    return ahead * (xp.logsigmoid(x) - sure) + (1 - ahead) * (xp.logsigmoid(-x) - unsure)


def nca_pair(xp: Any, chosen_score: Any, rejected_score: Any, beta: float) -> Any:
    """Keeps the chosen answer itself likely, which a gap does not (Chen et al. 2024, arXiv:2402.05369)."""
    up, down = xp.logsigmoid(beta * chosen_score), xp.logsigmoid(-beta * chosen_score)
    return -up - 0.5 * down - 0.5 * xp.logsigmoid(-beta * rejected_score)


def bco_pair(xp: Any, chosen_score: Any, rejected_score: Any, beta: float) -> Any:
    """A classifier of good and bad answers (Jung et al. 2024, arXiv:2404.04656), without the paper's shift δ of the
    rewards, which TRL's DPOTrainer leaves out."""
    return -xp.logsigmoid(beta * chosen_score) - xp.logsigmoid(-beta * rejected_score)


def sppo_hard(xp: Any, chosen_score: Any, rejected_score: Any, beta: float) -> Any:  # noqa: ARG001
    """Finite targets for both answers (Wu et al. 2024, arXiv:2405.00675, equation 4.7, with P of 1 for the winner)."""
    target = 0.5 / beta
    return (chosen_score - target) ** 2 + (rejected_score + target) ** 2


def aot(xp: Any, policy_gap: Any, ref_gap: Any, beta: float, label_smoothing: float) -> Any:
    """DPO on the sorted gaps of a minibatch: the k-th smallest of the policy against the k-th smallest of the reference
    (Melnyk et al. 2024, arXiv:2406.05882)."""
    ranked = xp.let("r′", xp.ranked(ref_gap, policy_gap))
    return sigmoid(xp, policy_gap - ranked, beta, label_smoothing)


def aot_unpaired(xp: Any, chosen_score: Any, rejected_score: Any, beta: float, label_smoothing: float) -> Any:
    """The same of scores: the k-th smallest of the chosen answers against the k-th smallest of the rejected ones."""
    ranked = xp.let("s′", xp.ranked(rejected_score, chosen_score))
    return sigmoid(xp, chosen_score - ranked, beta, label_smoothing)


def apo_zero(xp: Any, chosen_score: Any, rejected_score: Any, beta: float) -> Any:
    """Raises chosen answers and lowers rejected ones (D'Oosterlinck et al. 2024, arXiv:2408.06266, equation 7)."""
    return 1 - xp.sigmoid(beta * chosen_score) + xp.sigmoid(beta * rejected_score)


def apo_down(xp: Any, chosen_score: Any, gap: Any, beta: float) -> Any:
    """Lowers both, the rejected one more: for answers worse than the model's own (the same paper, equation 8)."""
    return xp.sigmoid(beta * chosen_score) + 1 - xp.sigmoid(beta * gap)


def discopop(xp: Any, gap: Any, beta: float, discopop_tau: float) -> Any:
    """A blend of logistic and exponential loss that a language model found (Lu et al. 2024, arXiv:2406.08414,
    equation 5)."""
    x = beta * gap
    share = xp.let("m", xp.sigmoid(x / discopop_tau))
    return -(1 - share) * xp.logsigmoid(x) + share * xp.exp(-x)


def kto(
    xp: Any, score: Any, chosen: Any, kto_baseline: Any, beta: float, desirable_weight: float, undesirable_weight: float
) -> Any:
    """On single answers [N]: how far a good one is above z, or a bad one below (arXiv:2402.01306).

    z, `kto_baseline`, is the mean score of answers paired with the wrong prompts, at least 0.
    """
    ahead = xp.let("d", xp.where(chosen, score - kto_baseline, kto_baseline - score))
    return (1 - xp.sigmoid(beta * ahead)) * xp.where(chosen, desirable_weight, undesirable_weight)


def apo_zero_unpaired(
    xp: Any, score: Any, chosen: Any, beta: float, desirable_weight: float, undesirable_weight: float
) -> Any:
    """APO-zero on single answers [N]: KTO without its z."""
    return kto(xp, score, chosen, 0.0, beta, desirable_weight, undesirable_weight)


def simpo(xp: Any, gap: Any, beta: float, simpo_gamma: float, label_smoothing: float) -> Any:
    """DPO's loss on the gap minus γ/β (Meng et al. 2024, arXiv:2405.14734)."""
    return sigmoid(xp, gap - simpo_gamma / beta, beta, label_smoothing)


def orpo(xp: Any, gap: Any, beta: float) -> Any:
    """On log-odds (Hong et al. 2024, arXiv:2403.07691; β is its λ), added to the imitation of the chosen answers.

    TRL also imitates the prompts; rlplay never does.
    """
    return -beta * xp.logsigmoid(gap)


def bradley_terry(
    xp: Any, gap: Any, margin: Any, chosen_score: Any, rejected_score: Any, center_rewards_coefficient: float
) -> Any:
    """On a reward model's scores (Bradley and Terry 1952, doi:10.1093/biomet/39.3-4.324).

    A margin for pairs that differ clearly (Llama 2, arXiv:2307.09288), and a pull of the scores towards mean 0
    (Eisenstein et al. 2023, arXiv:2312.09244, equation 2).
    """
    return -xp.logsigmoid(gap - margin) + center_rewards_coefficient * (chosen_score + rejected_score) ** 2


def nll(xp: Any, logprobs: Any) -> Any:  # noqa: ARG001
    """Of a token to imitate: −ℓ."""
    return -logprobs


def dft(xp: Any, logprobs: Any) -> Any:
    """The same, weighted by the token's own probability (Wu et al. 2025, arXiv:2508.05629)."""
    return -xp.stop_gradient(xp.exp(logprobs)) * logprobs
