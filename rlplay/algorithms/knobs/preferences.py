"""The settings of learning from given answers."""

from __future__ import annotations

from rlplay.algorithms.answer_scores import F_DIVERGENCES
from rlplay.algorithms.choice import describe_choices
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.pair_losses import IMITATIONS, PAIR_LOSSES, losses_reading
from rlplay.algorithms.value_losses import VALUE_LOSSES

_EVERY = ("loss_type", (*PAIR_LOSSES, *IMITATIONS))
_MIXED = tuple(loss.name for loss in PAIR_LOSSES.values() if loss.mixes)


def _losses(name: str) -> tuple[str, tuple[str, ...]]:
    return "loss_type", losses_reading(name)


PREFERENCES: tuple[Knob, ...] = (
    Knob("loss_type", "Loss", "preferences", "What the model learns from: rewards, examples or pairs.",
         f"policy_gradient: rewards, by the settings above. {describe_choices(IMITATIONS)} reward: pairs, to train a "
         f"reward model. {' '.join(f'{loss.name}: {loss.about}' for loss in VALUE_LOSSES.values())} The others: "
         "pairs, to train the policy. A change waits for the next update."),
    Knob("loss_weights", "Several losses", "preferences",
         "Weights of losses that are added up, loss_type among them; empty: loss_type alone.",
         "{sigmoid: 0.8, bco_pair: 0.2, sft: 1} is MPO: DPO, a classifier of single answers and imitation of the "
         "chosen ones. All take the scores that loss_type gives the answers.",
         needs=("loss_type", _MIXED)),
    Knob("answers_of", "Answers of", "preferences", "Who writes the pairs that no file has.",
         "start: the model that the run began with, so that what is compared does not depend on what was learned. "
         "policy: the model in training, as in online DPO.",
         needs=_EVERY),
    Knob("labeller", "Labels", "preferences", "Who decides which of two answers is better.",
         "gold: the gold score, or the reward if there is none, with errors by label_noise; labels in a file come "
         "first. user: you; the key a shows the pairs.",
         needs=_EVERY),
    Knob("label_noise", "Label noise", "preferences",
         "Gap in gold score at which the labeller is right 73 % of the time.",
         "0: the better answer always wins. Larger: more errors, most where the answers are nearly equal.",
         0.0, 10.0, 0.05, needs=("labeller", ("gold",))),
    Knob("label_smoothing", "Label smoothing ε", "preferences", "Share of labels assumed to be wrong.",
         "robust undoes such errors on average; the others hedge against them. exo_pair needs some.", 0.0, 0.49, 0.05,
         needs=_losses("label_smoothing")),
    Knob("f_divergence_type", "f-divergence", "preferences",
         "What holds the policy near the reference: how the ratio u of an answer's probabilities becomes its score.",
         describe_choices(F_DIVERGENCES),
         needs=("loss_type", tuple(loss.name for loss in PAIR_LOSSES.values() if loss.of_difference))),
    Knob("f_alpha_divergence_coef", "f-divergence a", "preferences", "The a of alpha_divergence.",
         "1: log u, as DPO. 0: 1 − 1/u, as forward_kl.", -10.0, 10.0, 0.1,
         needs=("f_divergence_type", ("alpha_divergence",))),
    Knob("ld_alpha", "LD-DPO α", "preferences",
         "Weight of tokens beyond the length of a pair's shorter answer; empty: all count in full.",
         "0: only as many tokens as the shorter answer has count, so length earns nothing.", 0.0, 1.0, 0.1,
         needs=_losses("ld_alpha")),
    Knob("use_weighting", "WPO weights", "preferences",
         "Weights a pair by how likely the policy finds its answers.",
         "On: pairs that the policy would hardly write count less. A pass over the answers more in each step.",
         needs=("loss_type", tuple(name for name in _MIXED if not PAIR_LOSSES[name].ranked))),
    Knob("discopop_tau", "DiscoPOP τ", "preferences", "Width of the change from logistic to exponential.",
         "Smaller: pairs that are ahead are left to the exponential sooner.", 0.001, 10.0, 1.5, True,
         needs=_losses("discopop_tau")),
    Knob("simpo_gamma", "SimPO margin γ", "preferences", "Gap of implicit rewards that SimPO aims for.",
         "Larger: the chosen answer must be further ahead before the pair's gradient fades.", 0.0, 10.0, 0.1,
         needs=_losses("simpo_gamma")),
    Knob("cpo_alpha", "CPO imitation α", "preferences", "Weight of imitating the chosen answer in CPO and SimPO.",
         "Keeps chosen answers likely, not only likelier than the rejected ones.", 0.0, 10.0, 0.1,
         needs=_losses("alpha")),
    Knob("alpha", "AlphaPO α", "preferences", "Shape of the reward without a reference: (1 − p^−α)/α.",
         "0: log p. Above 0: the less likely an answer, the more it pulls; below 0: the likelier.",
         -10.0, 10.0, 0.05, needs=_losses("alpha")),
    Knob("desirable_weight", "Desirable weight", "preferences", "Weight of chosen answers by themselves.",
         "More than undesirable_weight: gains count more than losses.", 0.0, 10.0, 0.1,
         needs=_losses("desirable_weight")),
    Knob("undesirable_weight", "Undesirable weight", "preferences", "Weight of rejected answers by themselves.",
         "More than desirable_weight: avoiding bad answers comes first.", 0.0, 10.0, 0.1,
         needs=_losses("undesirable_weight")),
    Knob("center_rewards_coefficient", "Centring", "preferences", "Pull of a reward model's scores towards 0.",
         "TRL recommends 0.01. At 0 only differences of scores are determined.", 0.0, 1.0, 0.01,
         needs=_losses("center_rewards_coefficient")),
)  # fmt: skip
