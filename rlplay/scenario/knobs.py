"""What the settings mean: title, range and consequence of each, for the knobs panel, help and checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Knob:
    """How a setting is shown and bounded; `log` steps multiply, others add `step`."""

    name: str
    title: str
    group: Literal["algorithm", "sampling", "credit", "objective", "update"]
    meaning: str
    effect: str
    low: float | None = None
    high: float | None = None
    step: float = 1.0
    log: bool = False


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
        Knob("candidates", "Candidates kept", "sampling", "Likeliest tokens recorded at each position.",
             "Only what you can inspect; training does not change.", 1, 4096, 1),
        Knob("reward_weights", "Reward weights", "credit", "Weight of each reward function in the sum.",
             "What is weighted is what is trained."),
        Knob("returns", "Return", "credit", "How reward becomes a return per token.",
             "broadcast: every token gets the sum. to_go: only what follows, discounted. gae: bootstraps from values."),
        Knob("baseline", "Baseline", "credit", "What a return is compared with.",
             "none: only the reward's sign decides. group_mean: better or worse than the siblings."),
        Knob("scale_rewards", "Scale", "credit", "What advantages are divided by.",
             "group: every group counts alike, easy or hard. none: Dr. GRPO's choice."),
        Knob("gamma", "Discount γ", "credit", "How much a later reward counts, per token.",
             "Below 1, early tokens of long answers starve.", 0.0, 1.0, 0.01),
        Knob("lam", "GAE λ", "credit", "0 trusts the value head, 1 trusts the outcome.",
             "Lower: less noise, more bias.", 0.0, 1.0, 0.05),
        Knob("surrogate", "Surrogate", "objective", "The objective per token.",
             "logp: plain policy gradient. ppo: ratio, clipped once it has moved far enough."),
        Knob("epsilon", "Clip ε", "objective", "Lower (and upper) clip distance of the ratio from 1.",
             "Smaller: tokens stop pulling sooner. Does nothing with one optimizer step per batch.",
             0.0, 1.0, 0.05),
        Knob("epsilon_high", "Clip ε high", "objective", "Upper clip distance; empty means the same as ε.",
             "Larger: rare good tokens may rise further.", 0.0, 10.0, 0.05),
        Knob("kl_placement", "KL placement", "objective", "Where the KL penalty acts.",
             "loss: a term of the loss. reward: subtracted from each token's reward."),
        Knob("kl_estimator", "KL estimator", "objective", "k1, k2 or k3 (Schulman), against the reference.",
             "k1 can be negative; in the loss it has no expected gradient on-policy."),
        Knob("beta", "KL weight β", "objective", "Weight of the KL to the reference.",
             "0: free to drift, and to cheat. High: stays near the base model and learns little.",
             0.0, 10.0, 0.05),
        Knob("use_bias_correction_kl", "KL bias correction", "objective", "Multiply the KL term by the ratio.",
             "Keeps the KL gradient unbiased when completions are older than the policy."),
        Knob("aggregation", "Aggregation", "objective", "How token losses become one number.",
             "Decides whether long completions weigh more than short ones."),
        Knob("num_iterations", "Iterations", "update", "Passes over each batch of completions.",
             "More: cheaper data, staler ratios; clipping starts to matter.", 1, 64, 1),
        Knob("num_minibatches", "Minibatches", "update", "Parts each pass is cut into, one optimizer step each.",
             "More: more, noisier steps.", 1, 64, 1),
        Knob("learning_rate", "Learning rate", "update", "Adam's step size.",
             "Too high: the policy collapses. Too low: nothing happens.", 0.0, 1.0, 1.5, True),
        Knob("max_grad_norm", "Gradient clip", "update", "Longest gradient allowed.",
             "Cuts rare huge steps.", 0.0, 1000.0, 0.5),
        Knob("vf_coef", "Value weight", "update", "Weight of the value loss.",
             "Only with a value baseline.", 0.0, 10.0, 0.05),
        Knob("cliprange_value", "Value clip", "update", "How far a new value may leave the one at rollout.",
             "Only with a value baseline.", 0.0, 10.0, 0.05),
    )
}  # fmt: skip
