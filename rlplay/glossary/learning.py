"""From rewards to weights: gradients, credit and what an update is made of."""

from __future__ import annotations

from rlplay.glossary.term import Term

LEARNING = (
    Term("Policy gradient",
         "The direction in which the expected reward grows fastest: change the log-probability of what was sampled in "
         "proportion to its advantage. With on-policy samples and an unbiased advantage this is right on average, and "
         "the reward needs no gradient.",
         "∇J = E[A·∇ log π(a | s)]", ("gradient", "score function"), ("lens", "credit")),
    Term("REINFORCE",
         "The plainest policy gradient: return times the gradient of the log-probability. An answer that earned 0 "
         "has no gradient. Pushing bad answers down takes a baseline or negative rewards.",
         aliases=("Monte Carlo policy gradient",), see=("knobs", "algorithm"),
         algorithm="reinforce"),
    Term("Baseline",
         "What a return is compared with: the group's mean, the mean of the other answers, a value. If it does not "
         "depend on the action it judges, the gradient stays right on average, and a good baseline reduces its noise. "
         "The group's mean contains the answer itself, which shrinks the gradient by the factor 1 − 1/n; leave-one-out "
         "does not.",
         aliases=("control variate", "leave-one-out"), see=("knobs", "baseline")),
    Term("Advantage",
         "How much better a token or an answer turned out than expected, for instance than the other answers to the "
         "same prompt. Above 0 the token should become likelier, below 0 less likely.",
         "A = Q − V, in practice (G − b)/scale", ("A", "better than expected"), ("lens", "advantages")),
    Term("Actor–critic",
         "The policy (actor) acts, and a value head (critic) learns what to expect, so that each token is judged "
         "against that. The critic starts out knowing nothing; until it has learned, it adds noise and, for λ < 1, "
         "bias.",
         aliases=("critic",), see=("curve", "explained_variance")),
    Term("Credit assignment",
         "Working out which tokens earned the reward. Broadcasting gives every token the whole return of its answer, "
         "not a share of it. Values, process rewards and sampled continuations tell tokens apart.",
         aliases=("blame",), see=("knobs", "returns")),
    Term("Credit",
         "How hard the loss pulled on one token, + up, − down, added up over the update's optimizer steps. It is the "
         "loss's direct pull, not the advantage: in a step where a token is clipped, its advantage adds no credit.",
         aliases=("pull", "push", "dloss_dlogp"), see=("lens", "credit")),
    Term("Monte Carlo estimate",
         "An average over samples in place of an expectation that nobody can add up. It is right on average, and its "
         "error shrinks with the square root of the number of samples. The probe estimates values this way.",
         "E[f] ≈ 1/n Σ f(xᵢ), error ∝ 1/√n", ("Monte-Carlo", "MC", "sampling estimate"), ("probe", None)),
    Term("Temporal difference",
         "How much one step has changed the expected return: the surprise δ. Learning from it need not wait for the "
         "outcome, because the value of the next state stands in for the rest (bootstrapping). That means less noise, "
         "but errors where the value is wrong. GAE uses the surprises of V, Q-learning and SARSA those of Q.",
         "δₜ = rₜ + γ·V(sₜ₊₁) − V(sₜ)", ("TD", "TD error", "bootstrapping"), ("curve", "td_error")),
    Term("GAE",
         "Generalised advantage estimation adds up the surprises from a token on, each later one weighted by a further "
         "γλ. At λ = 0 only the token's own surprise counts, so all later reward is the value head's guess; at λ = 1 "
         "it is the return minus the value. While the value head still predicts 0, tokens differ only by their "
         "distance from the rewards.",
         "Aₜ = Σₖ (γλ)ᵏ·δₜ₊ₖ", ("generalised advantage estimation", "generalized advantage estimation", "lambda", "λ"),
         ("knobs", "lam")),
    Term("Bias and variance",
         "Two errors of an estimate: variance is how much it scatters from batch to batch, bias how far its average is "
         "off. Bootstrapping from a value head lowers variance and adds bias; λ sets how much.",
         aliases=("bias–variance", "noise"), see=("knobs", "lam")),
    Term("Group",
         "All answers to one prompt in an update. Group methods compare an answer only with its siblings, so hard and "
         "easy prompts need no common yardstick.",
         aliases=("siblings", "generations", "num_generations"), see=("panel", "answers")),
    Term("Dead group",
         "A group whose answers all earned the same. With an outcome reward and a group baseline these rewards cancel "
         "out, and the group teaches nothing. If one answer in 20 is right, that happens to about two in three groups "
         "of 8.",
         aliases=("no signal", "zero-variance group", "frac_reward_zero_std"),
         see=("curve", "frac_reward_zero_std")),
    Term("Update",
         "One round of sampling, scoring, credit and optimizer steps. It goes over its batch in one or more passes "
         "(iterations), each cut into minibatches, with one optimizer step for each.",
         aliases=("training step", "batch"), see=("timeline", None)),
    Term("Epoch",
         "Here, one pass over the answers of an update (an iteration in TRL), not over the data set. After the first "
         "optimizer step, so from "
         "the second minibatch on, the policy is no longer the one that sampled, and ratios differ from 1.",
         aliases=("iteration", "num_iterations", "reuse"), see=("knobs", "num_iterations")),
    Term("Minibatch",
         "The part of a pass that one optimizer step learns from. More minibatches make more steps out of the same "
         "answers, each of them noisier.",
         aliases=("optimizer step", "gradient step"), see=("knobs", "num_minibatches")),
    Term("Learning rate",
         "How far an optimizer step goes. Too high, and the policy breaks; too low, and it learns nothing in the time "
         "there is. Adam, the usual optimizer here, also follows earlier gradients (momentum) and divides by their "
         "size: rewards twice as large do not make steps twice as long.",
         aliases=("step size", "lr", "Adam"), see=("knobs", "learning_rate")),
    Term("Loss",
         "What the optimizer lowers. In most of machine learning a falling loss means progress. Here that holds for "
         "examples and pairs, not for learning from rewards.",
         aliases=("objective", "surrogate loss"), see=("curve", "loss")),
    Term("Aggregation",
         "How the losses of single tokens become one number. It decides whether a token of a long answer counts as "
         "much as a token of a short one, and so whether learning favours some length.",
         aliases=("length bias", "token mean"), see=("knobs", "aggregation")),
    Term("Loss mask",
         "Marks which tokens count in the loss: those of the answers. Prompts and an environment's turns are read but "
         "never trained on.",
         aliases=("mask", "completion mask"), see=("panel", "tokens")),
    Term("Truncation",
         "Cutting an answer at the maximum length. A cut answer can lose the reward it was about to earn, or earn one "
         "for what it had not finished.",
         aliases=("truncated", "cut", "clipped_ratio", "overlong"), see=("curve", "completions/clipped_ratio")),
    Term("Outcome reward",
         "One reward for the whole answer, however it was reached. It is easy to check, but it does not say which "
         "tokens earned it.",
         aliases=("ORM", "final answer"), see=("knobs", "reward_stream")),
    Term("Process reward",
         "A score for each step of the reasoning, placed where the step ends. With returns=to_go a token gets the "
         "scores of its step and of all later ones. So a right second step is not blamed for a wrong first step, but "
         "a right first step is blamed for a wrong second one. Somebody or something has to judge the steps.",
         aliases=("PRM", "step reward"), see=("knobs", "reward_stream")),
    Term("Hierarchical reward",
         "A goal cut into sub-goals, each with its own reward, added up by weights. Potential-based shaping pays for "
         "getting nearer to a goal without changing which policy is best.",
         "R = Σ weight·part", ("sub-goals", "shaping", "reward components"), ("knobs", "reward_weights")),
    Term("Sample efficiency",
         "How much is learned per sampled answer. Going over a batch several times gets more out of it, until the "
         "ratios have left the band. Sampling answers is usually the expensive part.",
         aliases=("cost", "data efficiency"), see=("curve", "num_tokens")),
    Term("Generalisation",
         "Doing well on prompts that were not trained on, the held-out ones. If only the training reward rises, what "
         "the policy learns does not carry over; it may be memorising answers.",
         aliases=("held-out", "generalization", "overfitting", "evaluation"), see=("curve", "eval_reward")),
    Term("Catastrophic forgetting",
         "Losing abilities that the reward does not ask for while gaining the one it asks for. One way to see it: the "
         "model finds text of its pretraining less likely than before. A KL penalty to the reference, or a lower "
         "learning rate, limits it.",
         aliases=("forgetting", "alignment tax"), see=("curve", "eval_nll")),
    Term("Non-stationarity",
         "A world or a goal that changes while the agent learns: users ask for other things, labellers change their "
         "minds. Learning adds its own: each update changes the policy, and with it the answers, the baselines and "
         "what a value head has to predict.",
         aliases=("moving target",), see=("lens", "prob_delta")),
)  # fmt: skip
