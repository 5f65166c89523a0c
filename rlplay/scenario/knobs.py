"""What the settings mean: title, range and consequence of each, for the knobs panel, help and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlplay.scenario.lookup import fitting


@dataclass(frozen=True)
class Knob:
    """How a setting is shown and bounded; `log` steps multiply, others add `step`."""

    name: str
    title: str
    group: Literal["algorithm", "sampling", "credit", "objective", "update", "preferences"]
    meaning: str
    effect: str
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    log: bool = False
    needs: tuple[str, tuple[str, ...]] | None = None

    def applies(self, settings: Mapping[str, Any]) -> bool:
        """Whether the setting does anything under these settings; `needs` names the setting and words it takes."""
        return self.needs is None or settings.get(self.needs[0]) in self.needs[1]


_COMPARING = ("sigmoid", "hinge", "ipo", "robust", "kto", "simpo", "cpo", "orpo")

KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob("algorithm", "Algorithm", "algorithm", "Preset that sets the axes below.",
             "Replaces all of credit and objective that tells algorithms apart, KL and passes included."),
        Knob("num_prompts", "Prompts", "sampling", "Different prompts per update.",
             "More: steadier updates, slower.", 1, 1024, 1),
        Knob("num_generations", "Generations", "sampling", "Completions per prompt: the group.",
             "More: a better baseline and fewer groups without signal.", 1, 1024, 1),
        Knob("max_completion_length", "Longest completion", "sampling", "Tokens after which a completion is cut.",
             "Too small cuts answers before their reward.", 1, 8192, 8),
        Knob("temperature", "Temperature", "sampling", "Divides the logits when sampling and when scoring.",
             "Higher: more exploration. Near 0: every sample is the same and nothing can be compared.",
             0.05, 5.0, 0.1),
        Knob("dynamic_sampling", "Dynamic sampling", "sampling", "Replace groups whose rewards are all equal.",
             "Every group teaches something, for the price of more sampling (DAPO)."),
        Knob("candidates", "Candidates kept", "sampling", "Likeliest tokens recorded at each position.",
             "Only what you can inspect; training does not change.", 1, 4096, 1),
        Knob("reward_weights", "Reward weights", "credit", "Weight of each reward function in the sum.",
             "What is weighted is what is trained."),
        Knob("reward_stream", "Reward stream", "credit", "Where on the completion reward arrives.",
             "outcome: all on the last token. process: a step's score at its end, process_normalized: in group units. "
             "shaping: the gain in potential from step to step. Tells apart only rewards that score steps."),
        Knob("multi_objective_aggregation", "Several rewards", "credit", "How several rewards become one.",
             "normalize_then_sum: each is normalised in its group first, so that none drowns the others (GDPO)."),
        Knob("overlong_buffer", "Overlong buffer", "credit", "Tokens before the limit in which length costs; 0: none.",
             "Up to 1 is taken off answers that near the limit, so that being cut is no surprise (DAPO).", 0, 8192, 4),
        Knob("returns", "Return", "credit", "How reward becomes a return per token.",
             "broadcast: every token gets the sum. to_go: only what follows, discounted. gae: bootstraps from values. "
             "vine: reasoning steps are compared by answers sampled on from where they begin."),
        Knob("baseline", "Baseline", "credit", "What a return is compared with.",
             "none: only the reward's sign decides. group_mean: better or worse than the siblings. leave_one_out: than "
             "the others. greedy: than the likeliest answer. value: than a learned expectation."),
        Knob("scale_rewards", "Scale", "credit", "What advantages are divided by.",
             "group: every group counts alike, easy or hard. none: Dr. GRPO's choice."),
        Knob("gamma", "Discount γ", "credit", "How much a later reward counts, per token.",
             "Below 1, early tokens of long answers starve.", 0.0, 1.0, 0.01),
        Knob("lam", "GAE λ", "credit", "0 trusts the value head, 1 trusts the outcome.",
             "Lower: less noise, more bias.", 0.0, 1.0, 0.05, needs=("returns", ("gae",))),
        Knob("vine_samples", "Vine samples", "credit", "Answers sampled on from where each reasoning step begins.",
             "More: surer values, but every one is sampled: most of an update's time may go there.", 1, 256, 1,
             needs=("returns", ("vine",))),
        Knob("importance_sampling_level", "Ratio level", "objective", "Over what the ratio new/old is taken.",
             "token: each its own. sequence: one for the answer, the mean (GSPO). sequence_sum: the whole product "
             "(RLOO). geometric: a mean of clipped logs (GMPO)."),
        Knob("surrogate", "Surrogate", "objective", "The objective per token.",
             "logp: plain policy gradient. ratio: importance-weighted. ppo: clipped once it has moved far enough. "
             "trpo: the same within a KL limit. cispo, vespo: weighted log-probability. sapo: a soft clip."),
        Knob("epsilon", "Clip ε", "objective", "Lower (and upper) clip distance of the ratio from 1.",
             "Smaller: tokens stop pulling sooner. Does nothing with one optimizer step per batch.",
             0.0, 1.0, 0.05, needs=("surrogate", ("ppo", "ratio"))),
        Knob("epsilon_high", "Clip ε high", "objective",
             "Upper clip distance; empty means the same as ε. For cispo the largest weight itself.",
             "Larger: rare good tokens may rise further.", 0.0, 10.0, 0.05),
        Knob("delta", "Dual clip δ", "objective", "Largest ratio where A < 0 (verl: clip_ratio_c); empty: none.",
             "Bounds the push on a bad token that has become much likelier.", 1.0, 100.0, 0.5,
             needs=("surrogate", ("ppo",))),
        Knob("sapo_temperature_pos", "SAPO τ, A > 0", "objective", "Steepness of the soft clip for good tokens.",
             "Larger: the pull fades sooner.", 0.01, 100.0, 0.05, needs=("surrogate", ("sapo",))),
        Knob("sapo_temperature_neg", "SAPO τ, A ≤ 0", "objective", "Steepness of the soft clip for bad tokens.",
             "Larger: the push fades sooner.", 0.01, 100.0, 0.05, needs=("surrogate", ("sapo",))),
        Knob("vespo_k_pos", "VESPO k, A ≥ 0", "objective", "Power of the sequence's ratio in its weight.",
             "Larger: stale answers count less.", 0.0, 100.0, 0.5, needs=("surrogate", ("vespo",))),
        Knob("vespo_lambda_pos", "VESPO λ, A ≥ 0", "objective", "Decay of the weight with the ratio.",
             "Larger: answers grown likelier count less.", 0.0001, 100.0, 0.5, needs=("surrogate", ("vespo",))),
        Knob("vespo_k_neg", "VESPO k, A < 0", "objective", "Power of the sequence's ratio in its weight.",
             "Larger: stale answers count less.", 0.0, 100.0, 0.5, needs=("surrogate", ("vespo",))),
        Knob("vespo_lambda_neg", "VESPO λ, A < 0", "objective", "Decay of the weight with the ratio.",
             "Larger: answers grown likelier count less.", 0.0001, 100.0, 0.5, needs=("surrogate", ("vespo",))),
        Knob("beta", "KL weight β", "objective", "Weight of the KL to the anchor.",
             "0: free to drift, and to cheat. High: stays near the base model and learns little.",
             0.0, 10.0, 0.05),
        Knob("kl_placement", "KL placement", "objective", "Where the KL penalty acts.",
             "loss: a term of the loss. reward: subtracted from each token's reward. constraint: limits every "
             "update (TRPO)."),
        Knob("kl_estimator", "KL estimator", "objective", "k1, k2, k3 (Schulman) or full, over the whole vocabulary.",
             "k1 can be negative; in the loss it has no expected gradient on-policy. full is exact and needs memory."),
        Knob("kl_anchor", "KL anchor", "objective", "The policy that the KL is taken to.",
             "ref: the frozen start (RLHF). old: the one that sampled (TRPO, PPO's penalty)."),
        Knob("kl_ctrl", "KL controller", "objective", "Whether β adapts after each update.",
             "fixed: as set. ziegler: in proportion to the distance from target_kl. ppo: doubled or halved."),
        Knob("target_kl", "KL target", "objective", "The KL that an adaptive β aims at.",
             "Larger: more freedom.", 0.00001, 100.0, 1.5, True, needs=("kl_ctrl", ("ziegler", "ppo"))),
        Knob("kl_horizon", "KL horizon", "objective", "Completions over which Ziegler's β adapts.",
             "Larger: slower.", 1, 10_000_000, 1.5, True, needs=("kl_ctrl", ("ziegler",))),
        Knob("use_bias_correction_kl", "KL bias correction", "objective", "Multiply the KL term by the ratio.",
             "Keeps the KL gradient unbiased when completions are older than the policy.",
             needs=("kl_anchor", ("ref",))),
        Knob("max_kl", "KL limit", "objective", "Exact KL(old ‖ new) that an update may reach, nats a token.",
             "Larger: longer steps, on ground less sure.", 0.00001, 10.0, 1.5, True, needs=("surrogate", ("trpo",))),
        Knob("cg_iterations", "CG iterations", "update", "Of conjugate gradient, in search of the natural gradient.",
             "More: a truer direction. Each costs several passes.", 1, 100, 1, needs=("surrogate", ("trpo",))),
        Knob("cg_damping", "CG damping", "update", "Added to the Fisher matrix's diagonal.",
             "Larger: nearer to the plain gradient, and easier to solve for.", 0.0, 100.0, 1.5, True,
             needs=("surrogate", ("trpo",))),
        Knob("line_search_steps", "Line search", "update", "Steps tried, each 0.8 of the one before.",
             "If none keeps the limit and gains, the policy stays.", 1, 50, 1, needs=("surrogate", ("trpo",))),
        Knob("aggregation", "Aggregation", "objective", "How token losses become one number.",
             "Decides whether long completions weigh more than short ones."),
        Knob("mask_truncated_completions", "Mask truncated", "objective", "Leave cut completions out of the loss.",
             "They no longer teach, but have shaped the baseline."),
        Knob("top_entropy_quantile", "Top-entropy share", "objective",
             "Share of tokens, least decided first, that count.",
             "0.2: only the forks in the road are trained.", 0.01, 1.0, 0.1),
        Knob("off_policy_mask_threshold", "Off-policy mask", "objective",
             "Mean log(old/new) above which an answer with A < 0 is left out; empty: none.",
             "Stale bad answers stop pushing.", 0.0, 100.0, 0.05),
        Knob("entropy_coef", "Entropy bonus", "objective", "Weight of the mean entropy in the loss.",
             "Positive: keeps exploring. Too much: never decides.", -1.0, 1.0, 0.005),
        Knob("num_iterations", "Iterations", "update", "Passes over each batch of completions.",
             "More: cheaper data, staler ratios; clipping starts to matter.", 1, 64, 1),
        Knob("num_minibatches", "Minibatches", "update", "Parts each pass is cut into, one optimizer step each.",
             "More: more, noisier steps.", 1, 64, 1),
        Knob("learning_rate", "Learning rate", "update", "Adam's step size.",
             "Too high: the policy collapses. Too low: nothing happens.", 0.0, 1.0, 1.5, True),
        Knob("max_grad_norm", "Gradient clip", "update", "Longest gradient allowed.",
             "Cuts rare huge steps.", 0.0, 1000.0, 0.5),
        Knob("vf_coef", "Value weight", "update", "Weight of the value loss.",
             "Only with a value baseline.", 0.0, 10.0, 0.05, needs=("baseline", ("value",))),
        Knob("cliprange_value", "Value clip", "update", "How far a new value may leave the one at rollout.",
             "Only with a value baseline.", 0.0, 10.0, 0.05, needs=("baseline", ("value",))),
        Knob("loss_type", "Loss", "preferences", "What is learned from: rewards, or which of two answers is better.",
             "policy_gradient: rewards, by the settings above. sft: imitates. reward: trains a reward model. Others "
             "learn from pairs. It changes with the next update."),
        Knob("labeller", "Labels", "preferences", "Who says which of two answers is better.",
             "gold: the hidden score, as far as label_noise lets it. user: you do, with the verb prefer.",
             needs=("loss_type", (*_COMPARING, "sft", "reward"))),
        Knob("label_noise", "Label noise", "preferences", "Difference in gold score at which a label is right 73 %.",
             "0: the better answer always wins. Larger: labels err more often, near ties first.", 0.0, 10.0, 0.05,
             needs=("labeller", ("gold",))),
        Knob("label_smoothing", "Label smoothing ε", "preferences", "Share of the labels taken to be wrong.",
             "robust undoes such errors on average; sigmoid, simpo and cpo hedge against them.", 0.0, 0.49, 0.05,
             needs=("loss_type", ("sigmoid", "robust", "simpo", "cpo"))),
        Knob("simpo_gamma", "SimPO margin γ", "preferences", "Gap of implicit rewards that SimPO aims for.",
             "Larger: pairs that are already told apart go on pulling.", 0.0, 10.0, 0.1,
             needs=("loss_type", ("simpo",))),
        Knob("cpo_alpha", "CPO imitation α", "preferences", "Weight of imitating the chosen answer in CPO and SimPO.",
             "Keeps chosen answers likely in themselves, not only likelier than the others.", 0.0, 10.0, 0.1,
             needs=("loss_type", ("simpo", "cpo"))),
        Knob("desirable_weight", "Desirable weight", "preferences", "Weight of chosen answers in KTO.",
             "More than the other: gains count more than losses.", 0.0, 10.0, 0.1, needs=("loss_type", ("kto",))),
        Knob("undesirable_weight", "Undesirable weight", "preferences", "Weight of rejected answers in KTO.",
             "More than the other: avoids bad answers first.", 0.0, 10.0, 0.1, needs=("loss_type", ("kto",))),
        Knob("center_rewards_coefficient", "Centring", "preferences", "Pull of a reward model's scores towards 0.",
             "TRL recommends 0.01. Without it only differences of scores are determined.", 0.0, 1.0, 0.01,
             needs=("loss_type", ("reward",))),
    )
}  # fmt: skip


_CALLED = {"beta": ("β", "b"), "epsilon": ("ε", "e")}
"""The two bounds that are turned most, by the letters that papers and people call them by."""


def matching(typed: str) -> list[Knob]:
    """The settings in which every word of `typed` is found: by title, by name, then by meaning; all if it is empty."""
    return fitting(
        typed,
        KNOBS.values(),
        lambda knob: (knob.title, knob.name, *_CALLED.get(knob.name, ())),
        lambda knob: f"{knob.meaning} {knob.effect}",
    )
