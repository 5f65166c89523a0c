"""From rewards to weights: gradients, credit and what an update is made of."""

from __future__ import annotations

from rlplay.scenario.glossary.term import Term

LEARNING = (
    Term("Policy gradient",
         "The direction in which the expected reward grows: move the log-probability of what was sampled in proportion "
         "to its advantage. On average over samples that is exact, and the reward itself need not have a gradient.",
         "∇J = E[A·∇ log π(a | s)]", ("gradient", "score function"), ("lens", "credit"), "two-plus-two"),
    Term("REINFORCE",
         "The plainest policy gradient: reward times the gradient of the log-probability. An answer that earned 0 "
         "pulls on nothing: to push bad answers down takes a baseline, or rewards below 0.",
         aliases=("Monte Carlo policy gradient",), see=("knobs", "algorithm"), play="two-plus-two",
         algorithm="reinforce"),
    Term("Baseline",
         "What a return is compared with: the group's mean, the other answers, a value. As long as it does not depend "
         "on the action it judges, it leaves the gradient's average as it is and takes noise out of it.",
         aliases=("control variate", "leave-one-out"), see=("knobs", "baseline")),
    Term("Advantage",
         "How much better a token or an answer turned out than was to be expected, for instance than the other answers "
         "to the same prompt. Above 0 it is to become likelier, below 0 less likely.",
         "A = Q − V, in practice (G − b)/scale", ("A", "better than expected"), ("lens", "advantages")),
    Term("Actor–critic",
         "The policy acts, and a value head, the critic, learns what to expect, so that each token is judged against "
         "that. The critic has to be learned, too: until it is, its judgement misleads.",
         aliases=("critic",), see=("curve", "explained_variance")),
    Term("Credit assignment",
         "Finding out which tokens a reward is due to. Broadcasting gives all tokens of an answer the same advantage; "
         "values, process rewards and sampling on tell them apart.",
         aliases=("blame",), see=("knobs", "returns")),
    Term("Credit",
         "What the update really did with one token, + pulled it up, − pushed it down; the sum over its optimizer "
         "steps. It is measured, not meant: a token may have an advantage and yet be clipped.",
         aliases=("pull", "push", "dloss_dlogp"), see=("lens", "credit"), play="learn-to-think"),
    Term("Monte Carlo estimate",
         "An average over samples in place of an expectation that nobody can add up. It is right on average, and its "
         "error shrinks with the square root of the number of samples. The probe values a beginning in this way.",
         "E[f] ≈ 1/n Σ f(xᵢ), error ∝ 1/√n", ("Monte-Carlo", "MC", "sampling estimate"), ("probe", None)),
    Term("Temporal difference",
         "How far one step has changed what is expected: the surprise δ. Learning from it needs no outcome, since the "
         "value of the next state stands in for the rest (bootstrapping): less noise, but wrong where the value is.",
         "δₜ = rₜ + γ·V(sₜ₊₁) − V(sₜ)", ("TD", "TD error", "bootstrapping"), ("knobs", "returns")),
    Term("GAE",
         "Generalised advantage estimation adds up the surprises from a token on, each later one weighted by γλ. At "
         "λ = 0 only the next one counts and the value head is trusted; at λ = γ = 1 it is the return minus the value.",
         "Aₜ = Σₖ (γλ)ᵏ·δₜ₊ₖ", ("generalised advantage estimation", "generalized advantage estimation", "lambda", "λ"),
         ("knobs", "lam")),
    Term("Bias and variance",
         "Of an estimate: variance is how much it scatters from batch to batch, bias how far its average is off. "
         "Trusting a value head takes variance out and puts bias in; λ chooses how much.",
         aliases=("bias–variance", "noise"), see=("knobs", "lam")),
    Term("Group",
         "All answers to one prompt in an update. Group methods compare an answer with its siblings only, so that hard "
         "and easy prompts need no common yardstick.",
         aliases=("siblings", "generations", "num_generations"), see=("panel", "answers")),
    Term("Dead group",
         "A group whose answers all earned the same. With a group baseline every advantage in it is 0 and it teaches "
         "nothing. If one answer in 20 is right, that happens to two of three groups of 8.",
         aliases=("no signal", "zero-variance group", "frac_reward_zero_std"),
         see=("curve", "frac_reward_zero_std"), play="learn-to-think"),
    Term("Update",
         "One round of sampling, scoring, credit and optimizer steps. A batch is gone over in iterations, each cut "
         "into minibatches, one optimizer step for each.",
         aliases=("training step", "batch"), see=("timeline", None)),
    Term("Epoch",
         "One pass over the answers of an update; TRL calls it an iteration. From the second on, the policy is no "
         "longer the one that sampled, and the ratio has work to do.",
         aliases=("iteration", "num_iterations", "reuse"), see=("knobs", "num_iterations")),
    Term("Minibatch",
         "A part of an epoch on which one optimizer step is taken. More of them make more steps out of the same "
         "answers, each of them noisier.",
         aliases=("optimizer step", "gradient step"), see=("knobs", "num_minibatches")),
    Term("Learning rate",
         "How far an optimizer step goes. Too large, and the policy is thrown off; too small, and nothing is learned "
         "in the time there is.",
         aliases=("step size", "lr", "Adam"), see=("knobs", "learning_rate")),
    Term("Loss",
         "What the optimizer lowers. Unlike elsewhere in machine learning it does not measure progress: at ratio 1 it "
         "is minus the mean advantage, which a group baseline keeps near 0. Read the reward instead.",
         aliases=("objective", "surrogate loss"), see=("curve", "loss")),
    Term("Aggregation",
         "How the losses of single tokens become one number. It decides whether a token of a long answer weighs as "
         "much as one of a short answer, and so what is done to length.",
         aliases=("length bias", "token mean"), see=("knobs", "aggregation")),
    Term("Loss mask",
         "Marks which tokens are learned from: those the policy wrote. Prompts and an environment's turns, dim on the "
         "screen, are read but never trained on.",
         aliases=("mask", "completion mask"), see=("panel", "tokens")),
    Term("Truncation",
         "Cutting an answer at the longest length allowed. A cut answer mostly misses its reward, whatever it was "
         "about to say.",
         aliases=("truncated", "cut", "clipped_ratio", "overlong"), see=("curve", "completions/clipped_ratio")),
    Term("Outcome reward",
         "One reward for the whole answer, whatever the way that led there. Easy to check, hard to assign.",
         aliases=("ORM", "final answer"), see=("knobs", "reward_stream"), play="learn-to-think"),
    Term("Process reward",
         "A score for each step of the reasoning, shared by that step's tokens: a wrong second step need not spoil "
         "the credit of a right first one. Somebody or something has to judge the steps.",
         aliases=("PRM", "step reward"), see=("knobs", "reward_stream")),
    Term("Hierarchical reward",
         "Sub-goals that are rewarded on their own and added up by weights. Potential-based shaping pays for getting "
         "nearer to a goal without changing what is best in the end.",
         "R = Σ weight·part", ("sub-goals", "shaping", "reward components"), ("knobs", "reward_weights")),
    Term("Sample efficiency",
         "How much is learned from one answer. Going over a batch several times makes more of it, until the ratios "
         "have left the band; answers are usually the dear part.",
         aliases=("cost", "data efficiency"), see=("curve", "num_tokens")),
    Term("Generalisation",
         "Doing well where nothing was trained: on held-out prompts. If only the training reward rises, answers are "
         "being learned by heart.",
         aliases=("held-out", "generalization", "overfitting", "evaluation"), see=("curve", "eval_reward"),
         play="learn-to-think"),
    Term("Catastrophic forgetting",
         "Losing abilities that the reward does not ask for while gaining the one it does. A KL penalty to the "
         "reference, or a smaller step, holds on to them.",
         aliases=("forgetting", "alignment tax"), see=("knobs", "beta")),
    Term("Non-stationarity",
         "What is learned from keeps moving: each update changes the policy, and with it the answers, the baselines "
         "and what a value head has to predict.",
         aliases=("moving target",), see=("lens", "prob_delta")),
)  # fmt: skip
