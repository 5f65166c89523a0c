"""The settings of the loss that rewarded answers are trained with."""

from __future__ import annotations

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.choice import describe_choices
from rlplay.algorithms.corrections import CORRECTIONS, REJECTIONS
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.ratios import LEVELS
from rlplay.algorithms.surrogates import SURROGATES

_CORRECTED = tuple(CORRECTIONS)[1:]

OBJECTIVE: tuple[Knob, ...] = (
    Knob("importance_sampling_level", "Ratio level", "objective", "What the ratio new/old is computed for.",
         describe_choices(LEVELS)),
    Knob("surrogate", "Surrogate", "objective", "The objective per token.",
         describe_choices(SURROGATES)),
    Knob("epsilon", "Clip ε", "objective",
         "Lower (and upper) clip distance of the ratio from 1; in DPPO how far the probability may move.",
         "Smaller: tokens lose their gradient sooner. No effect with one optimizer step per batch.",
         0.0, 1.0, 0.05, needs=("surrogate", ("ppo", "dppo_tv", "dppo_kl", "ratio"))),
    Knob("epsilon_high", "Clip ε high", "objective",
         "Upper clip distance; empty means the same as ε. For cispo it is the largest weight itself.",
         "Larger: rare good tokens may rise further.", 0.0, 10.0, 0.05),
    Knob("delta", "Dual clip δ", "objective", "Largest ratio where A < 0 (verl: clip_ratio_c); empty: none.",
         "Above it, a bad token that has become much likelier is no longer pushed down.", 1.0, 100.0, 0.5,
         needs=("surrogate", ("ppo",))),
    Knob("sapo_temperature_pos", "SAPO τ, A > 0", "objective", "Steepness of the soft clip for good tokens.",
         "Larger: the gradient is damped sooner.", 0.01, 100.0, 0.05, needs=("surrogate", ("sapo",))),
    Knob("sapo_temperature_neg", "SAPO τ, A ≤ 0", "objective", "Steepness of the soft clip for bad tokens.",
         "Larger: the push is damped sooner.", 0.01, 100.0, 0.05, needs=("surrogate", ("sapo",))),
    Knob("vespo_k_pos", "VESPO k, A ≥ 0", "objective", "Power of the answer's ratio W in its weight.",
         "Larger: answers that have become less likely count less.", 0.0, 100.0, 0.5,
         needs=("surrogate", ("vespo",))),
    Knob("vespo_lambda_pos", "VESPO λ, A ≥ 0", "objective", "Decay of the weight with W.",
         "Larger: answers that have become likelier count less.", 0.0001, 100.0, 0.5,
         needs=("surrogate", ("vespo",))),
    Knob("vespo_k_neg", "VESPO k, A < 0", "objective", "Power of the answer's ratio W in its weight.",
         "Larger: answers that have become less likely count less.", 0.0, 100.0, 0.5,
         needs=("surrogate", ("vespo",))),
    Knob("vespo_lambda_neg", "VESPO λ, A < 0", "objective", "Decay of the weight with W.",
         "Larger: answers that have become likelier count less.", 0.0001, 100.0, 0.5,
         needs=("surrogate", ("vespo",))),
    Knob("beta", "KL weight β", "objective",
         "How strongly the policy is held near its anchor; in losses on pairs, the factor of the gap (in ORPO of "
         "its log-odds).",
         "Rewards: at 0 the policy is free to drift and to game the reward; a high β keeps it near the anchor. "
         "DPO and similar losses: the larger β, the smaller the gap at which a pair loses its gradient.",
         0.0, 10.0, 0.05),
    Knob("kl_placement", "KL placement", "objective", "Where the KL penalty acts.",
         "none: nowhere. loss: a term of the loss. reward: subtracted from each token's reward. constraint: a "
         "limit on every update (TRPO)."),
    Knob("kl_estimator", "KL estimator", "objective", "k1, k2, k3 (Schulman) or full, over the whole vocabulary.",
         "k1 can be negative. On-policy in the loss, without bias correction, its gradient is 0 on average, so it "
         "holds nothing back. full is exact at each position and takes memory."),
    Knob("kl_anchor", "KL anchor", "objective", "The policy to which the KL is measured.",
         "ref: the frozen reference (RLHF). old: the policy that sampled (TRPO, PPO's penalty)."),
    Knob("kl_ctrl", "KL controller", "objective", "Whether β adapts after each update.",
         "fixed: no. ziegler: in proportion to how far the KL is from target_kl. ppo: doubled or halved."),
    Knob("target_kl", "KL target", "objective", "The KL that an adaptive β aims at.",
         "Larger: the policy may move further.", 0.00001, 100.0, 1.5, True, needs=("kl_ctrl", ("ziegler", "ppo"))),
    Knob("kl_horizon", "KL horizon", "objective", "Answers over which Ziegler's β adapts.",
         "Larger: β adapts more slowly.", 1, 10_000_000, 1.5, True, needs=("kl_ctrl", ("ziegler",))),
    Knob("use_bias_correction_kl", "KL bias correction", "objective", "Multiplies the KL term by the ratio.",
         "With it the gradients of k1 and k3 are right on average, also for answers of an older policy.",
         needs=("kl_anchor", ("ref",))),
    Knob("max_kl", "KL limit", "objective", "Exact KL(old ‖ new) that an update may reach, nats per token.",
         "Larger: larger steps, where the estimate is less reliable.", 0.00001, 10.0, 1.5, True,
         needs=("surrogate", ("trpo",))),
    Knob("aggregation", "Aggregation", "objective", "How token losses become one number.",
         describe_choices(AGGREGATIONS)),
    Knob("mask_truncated_completions", "Mask truncated", "objective", "Leaves cut answers out of the loss.",
         "On: cut answers teach nothing themselves, but still count in the baseline."),
    Knob("top_entropy_quantile", "Top-entropy share", "objective",
         "Share of tokens whose surrogate counts, those of highest entropy first.",
         "0.2: trains only on the fifth of the tokens where the policy was most undecided.", 0.01, 1.0, 0.1),
    Knob("off_policy_mask_threshold", "Off-policy mask", "objective",
         "Mean log(old/new) above which an answer with A < 0 is left out; empty: none.",
         "Bad answers that have become much less likely stop pushing.", 0.0, 100.0, 0.05),
    Knob("importance_sampling_mode", "Sampler correction", "objective",
         "Multiplies the surrogate by how much likelier the policy finds a token than the sampler did.",
         describe_choices(CORRECTIONS)),
    Knob("importance_sampling_clip_max", "Correction, at most", "objective",
         "Largest factor of the sampler correction; empty: no bound.",
         "Smaller: less variance, more bias.", 0.0, 1000.0, 0.5, needs=("importance_sampling_mode", _CORRECTED)),
    Knob("importance_sampling_clip_min", "Correction, at least", "objective",
         "Smallest factor of the sampler correction; empty: no bound.",
         "With a mask: leaves out what the policy would hardly have said.", 0.0, 1.0, 0.1,
         needs=("importance_sampling_mode", _CORRECTED)),
    Knob("rollout_rs", "Sampler rejection", "objective",
         "Leaves out of the loss where policy and sampler are too far apart, by an estimate of their KL.",
         describe_choices(REJECTIONS)),
    Knob("rollout_rs_threshold", "Rejection threshold", "objective",
         "Largest divergence that stays in the loss; for a k1 the largest ratio, whose inverse is the smallest.",
         "Smaller: leaves out more.", 0.00001, 1000.0, 1.5, True, needs=("rollout_rs", tuple(REJECTIONS)[1:])),
    Knob("entropy_coef", "Entropy bonus", "objective", "Weight of the mean entropy in the loss.",
         "Above 0: the policy keeps exploring. Too much: it never decides.", -1.0, 1.0, 0.005),
)  # fmt: skip
