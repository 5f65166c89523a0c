"""The basic terms of all reinforcement learning: agent, environment, state, action, reward."""

from __future__ import annotations

from rlplay.glossary.term import Term

FRAME = (
    Term("Agent",
         "The one that acts and learns from the results. Here it is the language model: it writes, and learning "
         "changes its weights.",
         aliases=("learner", "model")),
    Term("Environment",
         "Everything the agent deals with: it gives the prompt, takes the answer and returns a reward. For single "
         "answers it is a data set and a scoring rule. In a conversation it also writes the other side's turns, which "
         "the policy reads but is not trained on. A simulated environment stands in for the one where the model will "
         "be used, and the policy also learns the simulator's mistakes.",
         aliases=("world", "simulated environment", "deployed environment", "simulator")),
    Term("Environment specification",
         "Saying exactly what the agent faces: which prompts it gets, what it sees, when an episode ends, what earns a "
         "reward. The policy learns what was specified, not what was meant. If a check accepts any text with the right "
         "number in it, writing many numbers is a solution. Common confusion: it is more than the reward function. A "
         "maximum length or a hidden fact changes what is learned, too.",
         aliases=("specification", "misspecification", "task design"), see=("knobs", "reward_weights")),
    Term("State",
         "The situation in which the policy chooses: the prompt and all tokens written so far. Each token that it "
         "adds makes the next state.",
         "sₜ = (x, y₁ … yₜ)", ("context", "prefix"), ("probe", None)),
    Term("Observation",
         "The part of the state that the policy can see. A language model sees its whole context, so the two are the "
         "same, unless something that decides the outcome is hidden from it: a secret number, or what the user really "
         "meant.",
         aliases=("partial observability", "observability")),
    Term("Time step",
         "One decision, counted from 0. Here it is one token: an answer of 22 tokens has 22 time steps and usually one "
         "outcome.",
         aliases=("timestep", "step t")),
    Term("Token",
         "A piece of text from the model's vocabulary: a word, part of a word, a digit, a punctuation mark. The model "
         "reads, writes and is trained in tokens.",
         aliases=("vocabulary", "tokenizer"), see=("panel", "tokens")),
    Term("Action",
         "What the policy chooses at a time step: the next token. Some algorithms, such as RLOO, treat the whole "
         "answer as one action.",
         "aₜ = yₜ₊₁ ~ π(· | sₜ)", ("move", "choice"), ("panel", "token")),
    Term("Answer",
         "The text that follows a prompt, up to its end token or the maximum length. The policy writes it, unless a "
         "data set brings it. Settings and code say completion; papers also say response or rollout.",
         aliases=("completion", "response", "rollout", "sample", "generation"), see=("panel", "answers")),
    Term("Episode",
         "One run from the first prompt to the end: a single answer, or a conversation of several turns. The next "
         "episode starts afresh.",
         aliases=("multi-turn", "single-turn")),
    Term("Turn",
         "One side's part of a conversation: a message of the user or the environment, or an answer of the model. An "
         "episode has one turn of the model, or several.",
         aliases=("message",), see=("panel", "tokens")),
    Term("Trajectory",
         "What happened in an episode, in order: states, actions, rewards. Its total is the plain sum of the rewards. "
         "A chat of three turns with rewards 0.8, 1.0 and 0.9 has a total of 2.7.",
         "τ = (s₀, a₀, r₀, s₁, a₁, r₁ …)", ("path",), ("panel", "answers")),
    Term("Reward",
         "A number that says how good the outcome was; the policy learns nothing else about it. A rule, a person or "
         "another model gives it, usually once, after the last token.",
         aliases=("score", "feedback"), see=("curve", "reward")),
    Term("Sparse reward",
         "A reward that is 0 almost everywhere, here usually at every token but the last. It does not say which tokens "
         "earned it; credit assignment has to work that out.",
         "r = 0, 0, 0, …, R", ("delayed reward", "end reward"), ("lens", "token_rewards")),
    Term("Return",
         "All the reward from a token on, added up, with each later reward discounted by γ. At γ = 0.9, rewards of 1 "
         "now, 2 one step later and 3 two steps later make 1 + 1.8 + 2.43 = 5.23.",
         "Gₜ = Σₖ γᵏ·rₜ₊ₖ", ("cumulative reward", "reward to go"), ("lens", "returns")),
    Term("Discount γ",
         "How much a reward is worth if it comes one step later. It compounds: at 0.9, less than half is left after "
         "seven steps. Answers end, so γ = 1 is usual. The further below 1, the less the early tokens of a long "
         "answer get of a reward at its end.",
         aliases=("gamma", "discount factor"), see=("knobs", "gamma")),
    Term("Policy",
         "The model that is trained. At every position it gives each token of its vocabulary a probability, and "
         "sampling draws from these.",
         "π(a | s)", ("pi", "strategy", "actor"), ("lens", "probability")),
    Term("Stochastic policy",
         "A policy that draws its next token from its probabilities and may write something else each time. A "
         "deterministic (greedy) policy always takes the likeliest token. Learning from rewards needs samples that "
         "differ: if all are the same, there is nothing to compare.",
         aliases=("deterministic policy", "greedy", "sampling"), see=("knobs", "temperature")),
    Term("Greedy rate",
         "The share of situations in which the policy's likeliest action is a right one. It says what the policy would "
         "get right without sampling, not how likely the right action is: likeliest may mean a probability of .27. So "
         "it often reaches 1 long before sampled actions are right.",
         aliases=("greedy accuracy",), see=("curve", "greedy_rate")),
    Term("Temperature",
         "Divides the logits before they become probabilities. Below 1 the likely tokens gain, above 1 the unlikely "
         "ones do; near 0 all samples are alike. Scoring has to use the temperature of sampling, or the ratios are "
         "wrong.",
         "p ∝ exp(z/T)", ("T", "logits", "softmax"), ("knobs", "temperature")),
    Term("Log-probability",
         "The natural logarithm of a probability: 0 for certainty, otherwise below 0. An answer's log-probability is "
         "the sum of its tokens'. The product of 200 probabilities of 0.15 is too small for a 32-bit float; the sum of "
         "their logarithms is −379.",
         "log π(y | x) = Σₜ log π(yₜ | x, y₁ … yₜ₋₁)", ("logp", "logprob", "likelihood"), ("panel", "token")),
    Term("Exploration",
         "Trying what is not known to be best. A language model explores by sampling: only what it has tried can be "
         "rewarded.",
         aliases=("explore", "search"), see=("knobs", "temperature")),
    Term("Exploitation",
         "Doing what has worked best so far. Updates lean this way by themselves: rewarded tokens become likelier, so "
         "the policy tries fewer others.",
         aliases=("exploit", "explore/exploit"), see=("curve", "entropy")),
    Term("Entropy",
         "How undecided the policy is about the next token, in nats; 0 is certainty. At entropy 0 it always writes the "
         "same and explores nothing.",
         aliases=("uncertainty", "nats"), see=("lens", "entropy")),
    Term("Entropy collapse",
         "Entropy that falls to almost nothing before the reward is high: the policy has settled too early. Undo, then "
         "try a lower learning rate, a higher temperature or an entropy bonus. Mode collapse is different but often "
         "comes along: the policy writes only a few kinds of answers.",
         aliases=("collapse",), see=("curve", "entropy")),
    Term("Curse of dimensionality",
         "The number of possibilities grows exponentially with the number of choices. With a vocabulary of 1,000 "
         "tokens there are 10⁶⁰ answers of 20 tokens. No table holds a value for each, and no search visits them all: "
         "the network has to generalise from the few that it samples. Common confusion: this is not a matter of speed. "
         "A machine a thousand times as fast would still see almost none of them.",
         aliases=("dimensionality", "high-dimensional"), see=("panel", "token")),
    Term("Value V",
         "The return to expect from a state if the policy continues from there. A value head, one layer on top of the "
         "model, learns to predict it; VinePPO and the probe estimate it by sampling.",
         "V(s) = E[G | s]", ("value function", "state value", "value head"), ("lens", "values")),
    Term("Action value Q",
         "The return to expect if a certain token comes next and the policy continues from there. Q alone does not say "
         "whether that is better than usual; the advantage, Q − V, does.",
         "Q(s, a) = E[G | s, a]", ("Q-value", "Q function"), ("probe", None)),
    Term("Bellman equation",
         "A state is worth the next reward plus the discounted value of the next state, on average over what is chosen "
         "and what follows. Temporal-difference learning moves the value towards the right side. With GAE, the value "
         "head here learns "
         "the λ-return instead: at λ = 0 the right side of this equation, at λ = 1 the whole return. In a tiny world "
         "the Bellman residual is the mean gap between the two sides.",
         "V(s) = E[r + γ·V(s′)]", ("Bellman", "backup"), ("curve", "bellman_residual")),
)  # fmt: skip
