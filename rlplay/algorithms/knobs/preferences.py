"""The settings of learning from given answers."""

from __future__ import annotations

from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.value_losses import VALUE_LOSSES

_COMPARING = ("sigmoid", "hinge", "ipo", "robust", "kto", "simpo", "cpo", "orpo")

PREFERENCES: tuple[Knob, ...] = (
    Knob("loss_type", "Loss", "preferences", "What the model learns from: rewards, examples or pairs.",
         "policy_gradient: rewards, by the settings above. sft: examples to imitate. reward: pairs, to train a "
         f"reward model. {' '.join(f'{loss.name}: {loss.about}' for loss in VALUE_LOSSES.values())} The others: "
         "pairs, to train the policy. A change waits for the next update."),
    Knob("labeller", "Labels", "preferences", "Who decides which of two answers is better.",
         "gold: the gold score, or the reward if there is none, with errors by label_noise; labels in a file come "
         "first. user: you; the key a shows the pairs.",
         needs=("loss_type", (*_COMPARING, "sft", "reward"))),
    Knob("label_noise", "Label noise", "preferences",
         "Gap in gold score at which the labeller is right 73 % of the time.",
         "0: the better answer always wins. Larger: more errors, most where the answers are nearly equal.",
         0.0, 10.0, 0.05, needs=("labeller", ("gold",))),
    Knob("label_smoothing", "Label smoothing ε", "preferences", "Share of labels assumed to be wrong.",
         "robust undoes such errors on average; sigmoid, simpo and cpo hedge against them.", 0.0, 0.49, 0.05,
         needs=("loss_type", ("sigmoid", "robust", "simpo", "cpo"))),
    Knob("simpo_gamma", "SimPO margin γ", "preferences", "Gap of implicit rewards that SimPO aims for.",
         "Larger: the chosen answer must be further ahead before the pair's gradient fades.", 0.0, 10.0, 0.1,
         needs=("loss_type", ("simpo",))),
    Knob("cpo_alpha", "CPO imitation α", "preferences", "Weight of imitating the chosen answer in CPO and SimPO.",
         "Keeps chosen answers likely, not only likelier than the rejected ones.", 0.0, 10.0, 0.1,
         needs=("loss_type", ("simpo", "cpo"))),
    Knob("desirable_weight", "Desirable weight", "preferences", "Weight of chosen answers in KTO.",
         "More than undesirable_weight: gains count more than losses.", 0.0, 10.0, 0.1,
         needs=("loss_type", ("kto",))),
    Knob("undesirable_weight", "Undesirable weight", "preferences", "Weight of rejected answers in KTO.",
         "More than desirable_weight: avoiding bad answers comes first.", 0.0, 10.0, 0.1,
         needs=("loss_type", ("kto",))),
    Knob("center_rewards_coefficient", "Centring", "preferences", "Pull of a reward model's scores towards 0.",
         "TRL recommends 0.01. At 0 only differences of scores are determined.", 0.0, 1.0, 0.01,
         needs=("loss_type", ("reward",))),
)  # fmt: skip
