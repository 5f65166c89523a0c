"""Losses on pairs: how much better the chosen answer has to score than the rejected one. Rows at the end.

Names and formulas are TRL's unless a docstring says otherwise. `share` is what a token adds to its answer's score, a
function of `logprobs` ℓ, `ref_logprobs` ℓ_ref and `mask`, all [..., L]. `compute` is the loss of P pairs, [P]: a
function of `gap` Δ (the chosen answer's score minus the rejected one's), of the two scores, and of settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlplay.algorithms.choice import Choice, Chosen


def log_ratio(xp: Any, logprobs: Any, ref_logprobs: Any) -> Any:  # noqa: ARG001
    """ℓ − ℓ_ref."""
    return logprobs - ref_logprobs


def own(xp: Any, logprobs: Any) -> Any:  # noqa: ARG001
    """ℓ: no reference."""
    return logprobs


def averaged(xp: Any, logprobs: Any, mask: Any) -> Any:
    """ℓ/n: no reference; the mean keeps long answers from scoring lower for their length."""
    return logprobs / xp.count_over(mask)


def sigmoid(xp: Any, gap: Any, beta: float, label_smoothing: float) -> Any:
    """−(1 − ε) log σ(β·Δ) − ε log σ(−β·Δ).

    On log-ratios it is DPO (Rafailov et al. 2023, arXiv:2305.18290), with ε > 0 conservative DPO (Mitchell 2023,
    "A note on DPO with noisy preferences"; TRL's DPOTrainer has no ε here). On log-probabilities it is CPO's preference
    term (Xu et al. 2024, arXiv:2401.08417).
    """
    return -(1 - label_smoothing) * xp.logsigmoid(beta * gap) - label_smoothing * xp.logsigmoid(-beta * gap)


def robust(xp: Any, gap: Any, beta: float, label_smoothing: float) -> Any:
    """DPO's loss as it would be in expectation if no label had been flipped (Chowdhury et al. 2024, arXiv:2403.00409).

    ε < ½ is the share of flipped labels. May be negative.
    """
    kept, flipped = -xp.logsigmoid(beta * gap), -xp.logsigmoid(-beta * gap)
    return ((1 - label_smoothing) * kept - label_smoothing * flipped) / (1 - 2 * label_smoothing)


def hinge(xp: Any, gap: Any, beta: float) -> Any:
    """SLiC's margin (Zhao et al. 2023, arXiv:2305.10425)."""
    return xp.relu(1 - beta * gap)


def ipo(xp: Any, gap: Any, beta: float) -> Any:  # noqa: ARG001
    """A finite target for log-ratios averaged over tokens (Azar et al. 2023, arXiv:2310.12036)."""
    return (gap - 1 / (2 * beta)) ** 2


def kto(
    xp: Any, score: Any, chosen: Any, kto_baseline: Any, beta: float, desirable_weight: float, undesirable_weight: float
) -> Any:
    """On single answers [N]: how far a good one is above z, or a bad one below (arXiv:2402.01306).

    z, `kto_baseline`, is the mean score of answers paired with the wrong prompts, at least 0.
    """
    ahead = xp.let("d", xp.where(chosen, score - kto_baseline, kto_baseline - score))
    return (1 - xp.sigmoid(beta * ahead)) * xp.where(chosen, desirable_weight, undesirable_weight)


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


def mean_of_tokens(xp: Any, total: Any, mask: Any) -> Any:
    """An answer's score, the mean of its tokens' shares."""
    return total / xp.count_over(mask)


def log_odds(xp: Any, total: Any) -> Any:
    """log(p/(1 − p)), p the exponential of the sum of the shares."""
    return xp.log_odds(total)


@dataclass(frozen=True)
class PairLoss(Choice):
    """A loss on pairs. An answer's score is the sum of its tokens' shares, or `rescaled` of that sum; without `share`
    it comes from a reward model. `imitation` is the weight of −ℓ of the chosen answers, added to the loss. `beta_free`
    says that β may be 0.
    """

    share: Callable[..., Any] | None = log_ratio
    rescaled: Callable[..., Any] | None = None
    imitation: Callable[[Chosen], float] = lambda _settings: 0.0
    beta_free: bool = False

    @property
    def with_reference(self) -> bool:
        """Whether it compares with the reference instead of using the policy alone."""
        return self.share is log_ratio

    @property
    def averages(self) -> bool:
        """Whether each token's share is divided by the answer's length (SimPO, ORPO)."""
        return self.share is averaged


def _alpha(s: Chosen) -> float:
    return s.cpo_alpha


PAIR_LOSSES: dict[str, PairLoss] = {
    row.name: row
    for row in (
        PairLoss("sigmoid", sigmoid, "DPO.", "arXiv:2305.18290", trl="DPOTrainer sigmoid"),
        PairLoss("hinge", hinge, "SLiC's margin.", "arXiv:2305.10425", trl="DPOTrainer hinge"),
        PairLoss("ipo", ipo, "a finite gap.", "arXiv:2310.12036", trl="DPOTrainer ipo", rescaled=mean_of_tokens),
        PairLoss("robust", robust, "DPO for wrong labels.", "arXiv:2403.00409", trl="DPOTrainer robust"),
        PairLoss("kto", kto, "single answers.", "arXiv:2402.01306", trl="KTOTrainer"),
        PairLoss(
            "simpo", simpo, "no reference, mean over tokens.", "arXiv:2405.14734", trl="CPOTrainer simpo",
            share=averaged, imitation=_alpha,
        ),
        PairLoss(
            "cpo", sigmoid, "no reference, with imitation.", "arXiv:2401.08417", trl="CPOTrainer sigmoid",
            share=own, imitation=_alpha, beta_free=True,
        ),
        PairLoss(
            "orpo", orpo, "odds, with imitation.", "arXiv:2403.07691", share=averaged, rescaled=log_odds,
            imitation=lambda _settings: 1.0, beta_free=True,
        ),
        PairLoss("reward", bradley_terry, "trains a reward model.", trl="RewardTrainer", share=None, beta_free=True),
    )
}  # fmt: skip
"""The losses on chosen and rejected answers, by `loss_type`."""
