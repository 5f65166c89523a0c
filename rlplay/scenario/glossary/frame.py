"""Who acts, on what, and what comes of it: the words that all of reinforcement learning shares."""

from __future__ import annotations

from rlplay.scenario.glossary.term import Term

FRAME = (
    Term("Agent",
         "Whoever acts and learns from what comes of it. Here it is the model that writes: learning changes its "
         "weights and nothing else.",
         aliases=("learner", "model")),
    Term("Environment",
         "What the agent deals with: it gives the prompt, takes the answer and returns a reward. For single answers "
         "that is a data set and a scoring rule; in a conversation it also writes the other side's turns, which the "
         "policy reads but is not trained on. A simulated one stands in for the one in which the model will be used, "
         "and what it gets wrong, the policy learns.",
         aliases=("world", "simulated environment", "deployed environment", "simulator")),
    Term("State",
         "What the policy goes by when it chooses: the prompt and all tokens written so far. Each token it appends "
         "makes the next state.",
         "sₜ = (x, y₁ … yₜ₋₁)", ("context", "prefix"), ("probe", None)),
    Term("Observation",
         "The part of the state that the policy gets to see. A language model sees its whole context, so the two are "
         "the same unless something that decides the outcome is hidden from it, such as a secret number or what the "
         "user really meant.",
         aliases=("partial observability", "observability")),
    Term("Time step",
         "One decision, counted from 0. Here that is one token: an answer of 22 tokens has 22 time steps and, as a "
         "rule, one outcome.",
         aliases=("timestep", "step t")),
    Term("Token",
         "A piece of text out of the model's vocabulary: a word, a part of one, a digit, a mark. It is the unit in "
         "which the model reads, writes and is trained.",
         aliases=("vocabulary", "tokenizer"), see=("panel", "tokens")),
    Term("Action",
         "What the policy chooses at a time step: the next token. Some algorithms, RLOO for one, take the whole answer "
         "as a single action instead.",
         "aₜ = yₜ ~ π(· | sₜ)", ("move", "choice"), ("panel", "token"), "two-plus-two"),
    Term("Answer",
         "What the policy writes after a prompt, up to its end token or the longest length. Also called completion, "
         "response or rollout.",
         aliases=("completion", "response", "rollout", "sample", "generation"), see=("panel", "answers")),
    Term("Episode",
         "One go from the first prompt to the end: a single answer, or a conversation of several turns. Afterwards "
         "everything begins afresh.",
         aliases=("turn", "multi-turn", "single-turn")),
    Term("Trajectory",
         "What happened in an episode, in order: states, actions, rewards. Its total is the plain sum of the rewards; "
         "a chat of three turns with rewards 0.8, 1.0 and 0.9 comes to 2.7.",
         "τ = (s₀, a₀, r₀, s₁, a₁, r₁ …)", ("path",), ("panel", "answers")),
    Term("Reward",
         "A number that says how good the outcome was, and all that the policy is told about it. It comes from a rule, "
         "a person or another model, most often once, after the last token.",
         aliases=("score", "feedback"), see=("curve", "reward"), play="learn-to-think"),
    Term("Sparse reward",
         "A reward that is 0 at every token but the last. It does not say which tokens deserved it: that is left to "
         "credit assignment.",
         "r = 0, 0, 0, …, R", ("delayed reward", "end reward"), ("lens", "token_rewards")),
    Term("Return",
         "All the reward that comes after a token, added up, each later one discounted by γ. Rewards of 1, 2 and 3 "
         "now, in one and in two steps make 1 + 1.8 + 2.43 = 5.23 at γ = 0.9.",
         "Gₜ = Σₖ γᵏ·rₜ₊ₖ", ("cumulative reward", "reward to go"), ("lens", "returns")),
    Term("Discount γ",
         "How much a reward still counts that comes one step later. It compounds: at 0.9 less than half is left after "
         "seven steps. Answers end, so γ = 1 is usual; below it the early tokens of long answers starve.",
         aliases=("gamma", "discount factor"), see=("knobs", "gamma")),
    Term("Policy",
         "The model that is trained. For every position it gives each token of its vocabulary a probability, and "
         "sampling draws from these.",
         "π(a | s)", ("pi", "strategy", "actor"), ("lens", "probability"), "two-plus-two"),
    Term("Stochastic policy",
         "One that draws its next token and may write something else each time. A deterministic (greedy) one always "
         "takes the likeliest. Learning needs samples that differ, for without difference there is nothing to compare.",
         aliases=("deterministic policy", "greedy", "sampling"), see=("knobs", "temperature"), play="two-plus-two"),
    Term("Temperature",
         "Divides the logits before they become probabilities. Below 1 the likely tokens gain, above 1 the others do, "
         "near 0 all samples are alike. Scoring has to use the temperature of sampling, or the ratios are wrong.",
         "p ∝ exp(z/T)", ("T", "logits", "softmax"), ("knobs", "temperature")),
    Term("Log-probability",
         "The natural logarithm of a probability: 0 for certainty, otherwise below 0. An answer's is the sum of its "
         "tokens'. The product of 200 probabilities of 0.15 is too small for a computer's 32-bit number; the sum of "
         "their logarithms is −379.",
         "log π(y | x) = Σₜ log π(yₜ | x, y₁ … yₜ₋₁)", ("logp", "logprob", "likelihood"), ("panel", "token")),
    Term("Exploration",
         "Trying what is not known to be best. A language model explores by sampling, and only what it has tried can "
         "be rewarded.",
         aliases=("explore", "search"), see=("knobs", "temperature")),
    Term("Exploitation",
         "Doing what has worked best so far. Updates lean this way by themselves: rewarded tokens become likelier, and "
         "fewer others get tried.",
         aliases=("exploit", "explore/exploit"), see=("curve", "entropy")),
    Term("Entropy",
         "How undecided the policy is about the next token, in nats; 0 is certainty. A policy without entropy no "
         "longer tries anything.",
         aliases=("uncertainty", "nats"), see=("lens", "entropy")),
    Term("Entropy collapse",
         "Entropy that falls to almost nothing before the reward has risen: the policy has settled too early. Undo, "
         "then try a smaller step, a higher temperature or an entropy bonus.",
         aliases=("mode collapse", "collapse"), see=("curve", "entropy")),
    Term("Value V",
         "The return to be expected from a state if the policy goes on from there. A value head, a small part beside "
         "the one that chooses tokens, learns to predict it; others estimate it by sampling on.",
         "V(s) = E[G | s]", ("value function", "state value", "value head"), ("lens", "values")),
    Term("Action value Q",
         "The return to be expected if a certain token is written next and the policy goes on from there. Whether that "
         "is better than usual, Q alone does not say: that is the advantage.",
         "Q(s, a) = E[G | s, a]", ("Q-value", "Q function"), ("probe", None)),
    Term("Bellman equation",
         "A state is worth the next reward plus what the next state is worth, on average over what is chosen and what "
         "follows. A value head is trained to make both sides agree.",
         "V(s) = E[r + γ·V(s′)]", ("Bellman", "backup"), ("knobs", "vf_coef")),
)  # fmt: skip
