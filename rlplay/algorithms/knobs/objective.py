"""The settings of the loss that rewarded answers are trained with."""

from __future__ import annotations

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.choice import describe_choices, reading
from rlplay.algorithms.corrections import CORRECTIONS, REJECTIONS
from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.ratios import LEVELS
from rlplay.algorithms.surrogates import SURROGATES

_CORRECTED = ("importance_sampling_mode", reading(CORRECTIONS, "importance_sampling_clip_max"))
_BOUNDED_BEFORE = ("ratio",)
"""Surrogates without a bound of their own, which GMPO's level of the ratio has bounded."""
TRUST_REGION = ("surrogate", tuple(row.name for row in SURROGATES.values() if row.trust_region))


def _surrogates(name: str) -> tuple[str, tuple[str, ...]]:
    return "surrogate", reading(SURROGATES, name)


OBJECTIVE: tuple[Knob, ...] = (
    Knob("importance_sampling_level", "Ratio level", "objective", "What the ratio new/old is computed for.",
         describe_choices(LEVELS)),
    Knob("surrogate", "Surrogate", "objective", "The objective per token.",
         describe_choices(SURROGATES)),
    Knob("epsilon", "Clip ε", "objective",
         "Lower (and upper) clip distance of the ratio from 1; in DPPO how far the probability may move.",
         "Smaller: tokens lose their gradient sooner. No effect with one optimizer step per batch, unless the ratio "
         "starts from the sampler (old_logprobs_of).",
         0.0, 1.0, 0.05, needs=("surrogate", (*reading(SURROGATES, "epsilon"), *_BOUNDED_BEFORE))),
    Knob("epsilon_high", "Clip ε high", "objective",
         "Upper clip distance; empty means the same as ε. For cispo it is the largest weight itself.",
         "Larger: rare good tokens may rise further.", 0.0, 10.0, 0.05),
    Knob("delta", "Dual clip δ", "objective", "Largest ratio where A < 0 (verl: clip_ratio_c); empty: none.",
         "Above it, a bad token that has become much likelier is no longer pushed down; with DPPO it is the largest "
         "weight of any token, which still pulls.", 1.0, 100.0, 0.5,
         needs=_surrogates("delta")),
    Knob("sapo_temperature_pos", "SAPO τ, A > 0", "objective", "Steepness of the soft clip for good tokens.",
         "Larger: the gradient is damped sooner.", 0.01, 100.0, 0.05, needs=_surrogates("sapo_temperature_pos")),
    Knob("sapo_temperature_neg", "SAPO τ, A ≤ 0", "objective", "Steepness of the soft clip for bad tokens.",
         "Larger: the push is damped sooner.", 0.01, 100.0, 0.05, needs=_surrogates("sapo_temperature_neg")),
    Knob("dro_beta", "DRO β", "objective", "Weight of half the squared log-ratio.",
         "Larger: a token moves less far from its probability when it was sampled.", 0.0, 100.0, 0.1,
         needs=_surrogates("dro_beta")),
    Knob("vespo_k_pos", "VESPO k, A ≥ 0", "objective", "Power of the answer's ratio W in its weight.",
         "Larger: answers that have become less likely count less.", 0.0, 100.0, 0.5,
         needs=_surrogates("vespo_k_pos")),
    Knob("vespo_lambda_pos", "VESPO λ, A ≥ 0", "objective", "Decay of the weight with W.",
         "Larger: answers that have become likelier count less.", 0.0001, 100.0, 0.5,
         needs=_surrogates("vespo_lambda_pos")),
    Knob("vespo_k_neg", "VESPO k, A < 0", "objective", "Power of the answer's ratio W in its weight.",
         "Larger: answers that have become less likely count less.", 0.0, 100.0, 0.5,
         needs=_surrogates("vespo_k_neg")),
    Knob("vespo_lambda_neg", "VESPO λ, A < 0", "objective", "Decay of the weight with W.",
         "Larger: answers that have become likelier count less.", 0.0001, 100.0, 0.5,
         needs=_surrogates("vespo_lambda_neg")),
    Knob("beta", "KL weight β", "objective",
         "How strongly the policy is held near its anchor; in losses on pairs, the factor of the gap (in ORPO of "
         "its log-odds).",
         "Rewards: at 0 the policy is free to drift and to game the reward; a high β keeps it near the anchor. "
         "DPO and similar losses: the larger β, the smaller the gap at which a pair loses its gradient.",
         0.0, 10.0, 0.05),
    Knob("kl_placement", "KL placement", "objective", "Where the KL penalty acts.",
         "none: nowhere. loss: a term of the loss. reward: subtracted from each token's reward. constraint: a "
         "limit on every update (TRPO)."),
    Knob("kl_estimator", "KL estimator", "objective", "k1, k2, k3 (Schulman), abs, or full, over the whole vocabulary.",
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
         needs=TRUST_REGION),
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
         "Smaller: less variance, more bias.", 0.0, 1000.0, 0.5, needs=_CORRECTED),
    Knob("importance_sampling_clip_min", "Correction, at least", "objective",
         "Smallest factor of the sampler correction; empty: no bound.",
         "With a mask: leaves out what the policy would hardly have said.", 0.0, 1.0, 0.1,
         needs=_CORRECTED),
    Knob("rollout_rs", "Sampler rejection", "objective",
         "Leaves out of the loss where policy and sampler are too far apart, by an estimate of their KL.",
         describe_choices(REJECTIONS)),
    Knob("rollout_rs_threshold", "Rejection threshold", "objective",
         "Largest divergence that stays in the loss; for a k1 the largest ratio, whose inverse is the smallest.",
         "Smaller: leaves out more.", 0.00001, 1000.0, 1.5, True,
         needs=("rollout_rs", reading(REJECTIONS, "rollout_rs_threshold"))),
    Knob("clip_cov_ratio", "Clip-Cov share", "objective",
         "Share of tokens left out by chance, of those with a covariance between its bounds; 0: none.",
         "Above 0: some of the tokens that lower the entropy most have no gradient in a step; at least one, if there "
         "is one. It takes another pass in all steps but the first.", 0.0, 1.0, 0.01),
    Knob("clip_cov_lb", "Clip-Cov, from", "objective", "Covariance above which tokens may be left out.",
         "Lower: more tokens to draw from, also such that matter less for the entropy.", -100.0, 100.0, 0.5),
    Knob("clip_cov_ub", "Clip-Cov, to", "objective", "Covariance below which tokens may be left out.",
         "Lower: fewer tokens may be left out. Those of higher covariance never are.", -100.0, 100.0, 0.5),
    Knob("kl_cov_ratio", "KL-Cov share", "objective", "Share of tokens that the KL term acts on; 1: all.",
         "Below 1: only those of highest covariance of advantage and log-probability, at least one, are held. It takes "
         "another pass in all steps but the first.", 0.0, 1.0, 0.01),
    Knob("entropy_coef", "Entropy bonus", "objective", "Weight of the mean entropy in the loss.",
         "Above 0: the policy keeps exploring. Too much: it never decides.", -1.0, 1.0, 0.005),
    Knob("use_adaptive_entropy", "Adaptive bonus", "objective", "Whether the entropy bonus adapts, step by step.",
         "On: it begins at entropy_coef, rises where the entropy is at most entropy_target, and falls above; it acts "
         "only after a step with at most that entropy."),
    Knob("entropy_target", "Entropy target", "objective", "Mean entropy up to which an adaptive bonus acts, nats.",
         "At or below it the bonus acts and grows with each step; above it the bonus is off and shrinks.",
         0.0, 20.0, 0.05, needs=("use_adaptive_entropy", (True,))),
    Knob("entropy_coef_delta", "Bonus step", "objective", "How far an adaptive bonus moves with each optimizer step.",
         "Larger: it reaches its bounds in fewer steps.", 0.0, 1.0, 0.001, needs=("use_adaptive_entropy", (True,))),
    Knob("entropy_coef_min", "Bonus, least", "objective", "The least that an adaptive bonus falls to.",
         "Above 0: once the entropy is at the target, the bonus begins with this much.", -1.0, 1.0, 0.005,
         needs=("use_adaptive_entropy", (True,))),
    Knob("entropy_coef_max", "Bonus, most", "objective", "The most that an adaptive bonus rises to.",
         "Smaller: the bonus pulls less, however long the entropy stays low.", -1.0, 1.0, 0.005,
         needs=("use_adaptive_entropy", (True,))),
)  # fmt: skip
