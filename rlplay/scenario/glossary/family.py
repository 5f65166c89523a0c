"""Where this kind of learning stands: the relatives of policy gradients, mostly for contrast."""

from __future__ import annotations

from rlplay.scenario.glossary.term import Term

FAMILY = (
    Term("Reinforcement learning",
         "Learning by doing: try something, be told how good it was, make what was good likelier, begin again. Nobody "
         "shows what would have been right. Here: sample answers, score them, assign credit, update.",
         aliases=("RL", "RL loop"), see=("timeline", None), play="two-plus-two"),
    Term("Supervised learning",
         "Learning from examples with the right answer given: each token of the example is the target. Unsupervised "
         "learning has examples alone, as when the next word of any text is to be guessed. Reinforcement learning has "
         "neither: it gets a score for what it did itself.",
         aliases=("unsupervised learning", "labels", "imitation learning"), see=("knobs", "loss_type"), play="dpo"),
    Term("Markov decision process",
         "The frame that reinforcement learning is told in: states, actions, where an action leads, what it earns. "
         "Markov means that the state holds all there is to know: how one got there no longer matters. With the whole "
         "text as the state, that holds here.",
         "(S, A, P, r, γ)", ("MDP", "Markov property"), ("panel", "tokens")),
    Term("Value-based method",
         "One that learns what actions are worth and then takes the best: the policy follows from the values. Policy "
         "gradients, all that is trained here, go the other way: they change the policy itself and use values, if at "
         "all, as a yardstick. With tens of thousands of tokens to choose from, that has proved the easier way.",
         "π(s) = argmaxₐ Q(s, a)", ("value-based", "value-based credit"), ("probe", None)),
    Term("Q-learning",
         "A value-based method: after each step the action value moves towards the reward plus the value of the best "
         "next action, whether or not that was taken. So it is off-policy: it learns about the best policy while "
         "following another. No algorithm here does; the probe estimates such values by sampling on.",
         "Q(s, a) ← Q(s, a) + α·(r + γ·maxₐ′ Q(s′, a′) − Q(s, a))", ("DQN",), ("probe", None)),
    Term("SARSA",
         "A value-based method like Q-learning, but on-policy: the action value moves towards the reward plus the "
         "value of the next action really taken, exploring ones included. It is named after what it looks at: state, "
         "action, reward, state, action. No algorithm here does this; GAE uses the same kind of surprise, of states.",
         "Q(s, a) ← Q(s, a) + α·(r + γ·Q(s′, a′) − Q(s, a))", see=("knobs", "returns")),
    Term("ε-greedy",
         "How value-based methods explore: mostly the action that seems best, with probability ε any other. A "
         "language model needs no such rule, since it samples: temperature says how often it tries something else.",
         aliases=("epsilon-greedy",), see=("knobs", "temperature")),
    Term("Chain of thought",
         "Working a problem out in words before the answer. No reward need ask for it: where it leads to right answers "
         "more often, they make it likelier.",
         aliases=("reasoning", "CoT"), see=("panel", "answers"), play="learn-to-think"),
)  # fmt: skip
