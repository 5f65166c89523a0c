"""The settings as the knobs panel, the help and the checks use them: title, range, meaning and effect of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rlplay.algorithms.aggregation import AGGREGATIONS
from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.choice import describe_choices
from rlplay.algorithms.ratios import LEVELS
from rlplay.algorithms.returns import RETURNS
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.surrogates import SURROGATES
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.search import search


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
    """Another setting and its values under which this one has any effect; None: always."""


_COMPARING = ("sigmoid", "hinge", "ipo", "robust", "kto", "simpo", "cpo", "orpo")

KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob("algorithm", "Algorithm", "algorithm", "A named combination of the settings below.",
             "Sets everything in which algorithms differ: reward, return, baseline, surrogate, KL, passes and loss."),
        Knob("num_prompts", "Prompts", "sampling", "Prompts per update; in learning from pairs, one pair each.",
             "More: less noise in an update, but it takes longer.", 1, 1024, 1),
        Knob("num_generations", "Generations", "sampling", "Answers per prompt: the group. A pair always has two.",
             "More: a better baseline and fewer groups without signal.", 1, 1024, 1),
        Knob("max_completion_length", "Max answer length", "sampling", "Tokens after which an answer is cut.",
             "Too small: answers are cut before they can earn their reward.", 1, 8192, 8),
        Knob("temperature", "Temperature", "sampling", "Divides the logits when sampling and when scoring.",
             "Higher: more exploration. Near 0: all samples are the same, and there is nothing to compare.",
             0.05, 5.0, 0.1),
        Knob("top_p", "Top-p", "sampling", "Samples from the likeliest tokens that together have this probability.",
             "1: samples from all tokens. Below 1: leaves out the least likely. Log-probabilities, ratio, entropy and "
             "KL are still those of all tokens, as in TRL, so the samples are no longer quite those of the policy "
             "that is scored.", 0.01, 1.0, 0.05),
        Knob("top_k", "Top-k", "sampling", "Samples from this many of the likeliest tokens; 0: from all.",
             "Smaller: less exploration. Log-probabilities, ratio, entropy and KL are still those of all tokens, as "
             "in TRL, so the samples are no longer quite those of the policy that is scored.", 0, 1_000_000, 5),
        Knob("exploration_rate", "Exploration ε", "sampling", "Share of moves drawn from all moves, the best included.",
             "0: always the best move by Q. 1: every move equally often. In between: ε-greedy.", 0.0, 1.0, 0.05,
             needs=("loss_type", tuple(VALUE_LOSSES))),
        Knob("dynamic_sampling", "Dynamic sampling", "sampling", "Replaces groups whose rewards are all equal.",
             "More groups teach something, at the cost of more sampling (DAPO)."),
        Knob("candidates", "Top-k recorded", "sampling", "Likeliest tokens recorded at each position.",
             "Limits what you can inspect; does not change training.", 1, 4096, 1),
        Knob("observe", "Passes to look at", "sampling", "Whether passes are made whose numbers are only looked at.",
             "light: skips scoring the answers again after the update, and skips the reference unless the training "
             "needs it. What only they give, such as kl and kl_old, is then absent; training is the same."),
        Knob("reward_weights", "Reward weights", "credit", "Weight of each reward function in the sum.",
             "Only rewards with a nonzero weight count; one of weight 0 is tracked as a gold score, and a gold score "
             "counts if it is named. Empty: every reward has the weight 1. Pairs without a gold score are labelled by "
             "the sum."),
        Knob("squares", "Painted squares", "credit", "Squares of a map or arms of a bandit, changed in the run.",
             "A number is the reward for entering the square. G, O, #, I and . make it a goal, a hole, a wall, ice or "
             "floor: {d4: ., a4: G} moves the goal. An arm takes a number, as in {a: 1}."),
        Knob("reward_stream", "Reward stream", "credit", "Where in the answer reward arrives.",
             "outcome: all on the last token. process: each step's score at its end. process_normalized: the same, "
             "normalised in the group. shaping: the change in score from step to step, with the score as the "
             "potential. Without step scores, process and shaping are the same as outcome."),
        Knob("multi_objective_aggregation", "Combining rewards", "credit", "How several rewards become one.",
             "sum_then_normalize: added up first. normalize_then_sum: each is normalised in its group first, so that "
             "none drowns the others (GDPO)."),
        Knob("overlong_buffer", "Overlong buffer", "credit", "Tokens before the limit with a length penalty; 0: none.",
             "Answers near the limit lose up to 1, so that the penalty sets in before the cut (DAPO).", 0, 8192, 4),
        Knob("returns", "Return", "credit", "How rewards become a return for each token.",
             describe_choices(RETURNS)),
        Knob("baseline", "Baseline", "credit", "What a return is compared with.",
             describe_choices(BASELINES)),
        Knob("scale_rewards", "Scale", "credit", "What advantages are divided by.",
             describe_choices(SCALES)),
        Knob("gamma", "Discount γ", "credit", "How much a reward is worth if it comes one token later.",
             "The further below 1, the less the early tokens of a long answer get of a reward at its end.",
             0.0, 1.0, 0.01),
        Knob("lam", "GAE λ", "credit", "0 relies on the value head, 1 on the rewards that followed.",
             "Lower: less noise, more bias.", 0.0, 1.0, 0.05, needs=("returns", ("gae",))),
        Knob("vine_samples", "Vine samples", "credit", "Answers sampled from the start of each reasoning step.",
             "More: more accurate values, but sampling them can take most of an update's time.", 1, 256, 1,
             needs=("returns", ("vine",))),
        Knob("importance_sampling_level", "Ratio level", "objective", "What the ratio new/old is computed for.",
             describe_choices(LEVELS)),
        Knob("surrogate", "Surrogate", "objective", "The objective per token.",
             describe_choices(SURROGATES)),
        Knob("epsilon", "Clip ε", "objective", "Lower (and upper) clip distance of the ratio from 1.",
             "Smaller: tokens lose their gradient sooner. No effect with one optimizer step per batch.",
             0.0, 1.0, 0.05, needs=("surrogate", ("ppo", "ratio"))),
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
        Knob("cg_iterations", "CG iterations", "update", "Iterations of conjugate gradient for the natural gradient.",
             "More: a more accurate direction. Each costs several passes.", 1, 100, 1, needs=("surrogate", ("trpo",))),
        Knob("cg_damping", "CG damping", "update", "Added to the Fisher matrix's diagonal.",
             "Larger: closer to the plain gradient, and easier to solve for.", 0.0, 100.0, 1.5, True,
             needs=("surrogate", ("trpo",))),
        Knob("line_search_steps", "Line search", "update", "Number of steps to try, each 0.8 times the one before.",
             "How many shorter steps to try. If none keeps the KL limit and improves the surrogate, the policy does "
             "not move.", 1, 50, 1,
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
        Knob("entropy_coef", "Entropy bonus", "objective", "Weight of the mean entropy in the loss.",
             "Above 0: the policy keeps exploring. Too much: it never decides.", -1.0, 1.0, 0.005),
        Knob("num_iterations", "Iterations", "update", "Passes over each batch of answers.",
             "More: more learning per sample, but ratios move away from 1 and clipping begins to matter.", 1, 64, 1),
        Knob("num_minibatches", "Minibatches", "update", "Parts of each pass, one optimizer step each.",
             "More: more steps, each noisier.", 1, 64, 1),
        Knob("per_device_train_batch_size", "Answers at once", "update",
             "Answers that one pass takes; 0: as many as its logits allow.",
             "Smaller: less memory, more time; the gradients of the parts add up to that of the minibatch. A change "
             "waits for the next update.", 0, 65536, 1),
        Knob("gradient_checkpointing", "Checkpointing", "update", "Runs each layer again to get its gradient.",
             "On: an optimizer step keeps less in memory and takes longer; its gradients are the same. A change waits "
             "for the next update."),
        Knob("learning_rate", "Learning rate", "update", "Adam's step size; α of Q-learning and SARSA.",
             "Too high: the policy breaks. Too low: nothing happens.", 0.0, 1.0, 1.5, True),
        Knob("lr_scheduler_type", "Schedule", "update", "How the learning rate changes over a stage or the run.",
             "constant: not at all. constant_with_warmup: it rises from 0 in warmup_steps steps. linear and cosine: "
             "after such a rise it falls to 0 at the last planned update, and stays there."),
        Knob("warmup_steps", "Warm-up steps", "update", "Optimizer steps in which the learning rate rises from 0.",
             "Above 0: the rate starts at 0, so the very first step moves nothing. With lr_scheduler_type=constant "
             "there is no such rise.",
             0, 1_000_000, 5),
        Knob("weight_decay", "Weight decay", "update", "Share of a weight that a step of learning rate 1 takes away.",
             "Above 0: every step shrinks the weight matrices, but not biases and norms, by the fraction "
             "learning_rate·weight_decay (AdamW).",
             0.0, 10.0, 0.01),
        Knob("max_grad_norm", "Gradient clip", "update", "Largest norm of the gradient; 0: no limit.",
             "A longer gradient is shortened to it.", 0.0, 1000.0, 0.5),
        Knob("vf_coef", "Value weight", "update", "Weight of the value loss.",
             "Larger: the weights that policy and critic share follow the critic more. TRPO trains only the head.",
             0.0, 10.0, 0.05, needs=("baseline", ("value",))),
        Knob("cliprange_value", "Value clip", "update", "How far a value may move from its prediction at sampling.",
             "Smaller: the critic has less reason to move far in one update.", 0.0, 10.0, 0.05,
             needs=("baseline", ("value",))),
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
    )
}  # fmt: skip


OTHER_NAMES = {
    "beta": ("β", "b", "kl_coef"),
    "epsilon": ("ε", "e", "cliprange"),
    "learning_rate": ("lr",),
    "num_generations": ("group_size",),
}
"""What papers and other programs call a setting."""


def matching(typed: str) -> list[Knob]:
    """The settings that contain every word of `typed`: by title, by name, then by meaning; all if it is empty."""
    return search(
        typed,
        KNOBS.values(),
        lambda knob: (knob.title, knob.name, *OTHER_NAMES.get(knob.name, ())),
        lambda knob: f"{knob.meaning} {knob.effect}",
    )
