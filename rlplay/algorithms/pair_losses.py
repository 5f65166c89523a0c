"""Losses on given answers: how much better the chosen one has to score than the rejected one, or how it is imitated.

`answer_scores.py` has what scores an answer, `pair_functions.py` the losses of the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlplay.algorithms import pair_functions as of
from rlplay.algorithms.answer_scores import averaged, desensitized, diverged, log_odds, log_ratio, own, reshaped
from rlplay.algorithms.choice import Choice, Chosen, argument_names

_OF_SCORES = frozenset({"score", "chosen_score", "rejected_score", "policy_gap"})


@dataclass(frozen=True)
class PairLoss(Choice):
    """A loss on pairs. An answer's score is the sum of its tokens' shares, or `rescaled` of that sum; without `share`
    it comes from a reward model. `imitation` is the weight of −ℓ of the chosen answers, added to the loss. `beta_free`
    says that β may be 0, `needs_smoothing` that label_smoothing may not, `ranked` that the pairs of a minibatch are
    compared with each other.
    """

    share: Callable[..., Any] | None = desensitized
    rescaled: Callable[..., Any] | None = diverged
    imitation: Callable[[Chosen], float] = lambda _settings: 0.0
    beta_free: bool = False
    needs_smoothing: bool = False
    ranked: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """The quantities and settings that it depends on."""
        each = (self.compute, self.share, self.rescaled)
        return frozenset(name for compute in each if compute is not None for name in argument_names(compute))

    @property
    def with_reference(self) -> bool:
        """Whether it compares with the reference instead of using the policy alone."""
        return "ref_logprobs" in self.reads

    @property
    def alone(self) -> bool:
        """Whether each answer counts by itself, without the other one of its pair."""
        return "score" in self.reads

    @property
    def of_difference(self) -> bool:
        """Whether only differences of scores count, so that any f-divergence to the reference may score them."""
        return self.mixes and not self.reads & _OF_SCORES

    @property
    def mixes(self) -> bool:
        """Whether it may be one of several losses on the same scores."""
        return self.share is desensitized

    @property
    def averages(self) -> bool:
        """Whether each token's share is divided by the answer's length (SimPO, ORPO)."""
        return self.share is averaged

    @property
    def of_odds(self) -> bool:
        """Whether an answer's score is the logarithm of its odds (ORPO)."""
        return self.rescaled is log_odds

    @property
    def rewards_score(self) -> bool:
        """Whether β times the score is what it takes for reward, instead of β times the sum of the shares."""
        return self.rescaled is reshaped


def _alpha(s: Chosen) -> float:
    return s.cpo_alpha


def _dpo(name: str, compute: Callable[..., Any], about: str, paper: str, **more: Any) -> PairLoss:
    return PairLoss(name, compute, about, paper, trl=f"DPOTrainer {name}", **more)


def _cpo(name: str, trl: str, compute: Callable[..., Any], about: str, paper: str, share: Any, free: bool) -> PairLoss:
    return PairLoss(
        name, compute, about, paper, trl=f"CPOTrainer {trl}", share=share, rescaled=reshaped, imitation=_alpha,
        beta_free=free,
    )  # fmt: skip


PAIR_LOSSES: dict[str, PairLoss] = {
    row.name: row
    for row in (
        _dpo("sigmoid", of.sigmoid, "DPO.", "arXiv:2305.18290"),
        _dpo("sigmoid_norm", of.sigmoid_norm, "DPO, mean over tokens.", "arXiv:2411.15124"),
        _dpo("hinge", of.hinge, "SLiC's margin.", "arXiv:2305.10425"),
        _dpo("ipo", of.ipo, "a finite gap.", "arXiv:2310.12036"),
        _dpo("robust", of.robust, "DPO for wrong labels.", "arXiv:2403.00409"),
        _dpo("exo_pair", of.exo_pair, "reverse KL to the label.", "arXiv:2402.00856", needs_smoothing=True),
        _dpo("discopop", of.discopop, "logistic and exponential.", "arXiv:2406.08414"),
        _dpo("nca_pair", of.nca_pair, "keeps chosen answers likely.", "arXiv:2402.05369"),
        _dpo("bco_pair", of.bco_pair, "a classifier.", "arXiv:2404.04656"),
        _dpo("sppo_hard", of.sppo_hard, "a target for each answer.", "arXiv:2405.00675"),
        _dpo("apo_zero", of.apo_zero, "chosen up, rejected down.", "arXiv:2408.06266"),
        _dpo("apo_down", of.apo_down, "both down.", "arXiv:2408.06266"),
        _dpo("aot", of.aot, "sorted gaps.", "arXiv:2406.05882", ranked=True),
        _dpo("aot_unpaired", of.aot_unpaired, "sorted scores.", "arXiv:2406.05882", ranked=True),
        PairLoss(
            "kto", of.kto, "single answers.", "arXiv:2402.01306", trl="KTOTrainer kto", share=log_ratio, rescaled=None
        ),
        PairLoss(
            "apo_zero_unpaired", of.apo_zero_unpaired, "single answers, no baseline.", "arXiv:2408.06266",
            trl="KTOTrainer apo_zero_unpaired", share=log_ratio, rescaled=None,
        ),
        _cpo("simpo", "simpo", of.simpo, "no reference, mean over tokens.", "arXiv:2405.14734", averaged, free=False),
        _cpo("cpo", "sigmoid", of.sigmoid, "no reference, with imitation.", "arXiv:2401.08417", own, free=True),
        _cpo("cpo_hinge", "hinge", of.hinge, "the same with SLiC's margin.", "arXiv:2305.10425", own, free=True),
        _cpo("cpo_ipo", "ipo", of.ipo_of_likelihoods, "with a finite gap.", "arXiv:2310.12036", averaged, free=False),
        PairLoss(
            "orpo", of.orpo, "odds, with imitation.", "arXiv:2403.07691", share=averaged, rescaled=log_odds,
            imitation=lambda _settings: 1.0, beta_free=True,
        ),
        PairLoss(
            "reward", of.bradley_terry, "trains a reward model.", trl="RewardTrainer", share=None, rescaled=None,
            beta_free=True,
        ),
    )
}  # fmt: skip
"""The losses on chosen and rejected answers, by `loss_type`."""

IMITATIONS: dict[str, Choice] = {
    row.name: row
    for row in (
        Choice("sft", of.nll, "examples to imitate.", trl="SFTTrainer nll"),
        Choice("dft", of.dft, "the same, likely tokens first.", "arXiv:2508.05629", trl="SFTTrainer dft"),
    )
}
"""The losses of a token to imitate, by `loss_type`."""
IMITATED = "sft"
"""The one that losses on pairs add for their chosen answers."""


def imitation_row(loss_type: str) -> Choice:
    """The loss of a token to imitate: its own, or that of a pair's chosen answer."""
    return IMITATIONS.get(loss_type, IMITATIONS[IMITATED])


def mixture(s: Chosen) -> Mapping[str, float]:
    """The losses on pairs that the settings add up, with their weights; `IMITATED` imitates the chosen answers."""
    return s.loss_weights or {s.loss_type: 1.0}


def losses_reading(name: str) -> tuple[str, ...]:
    """The losses of pairs that depend on a setting."""
    return tuple(loss.name for loss in PAIR_LOSSES.values() if name in loss.reads)
