"""Related kinds of learning, mostly for contrast with policy gradients."""

from __future__ import annotations

from rlplay.glossary.term import Term

FAMILY = (
    Term("Reinforcement learning",
         "Learning by doing: try something, get a score, make what scored well likelier, repeat. Nobody shows what "
         "would have been right. Here: sample answers, score them, assign credit, update.",
         aliases=("RL", "RL loop"), see=("timeline", None)),
    Term("Supervised learning",
         "Learning from examples that come with the right answer: each token of the example is a target. Unsupervised "
         "learning has examples without answers and looks for structure in them, such as clusters. Reinforcement "
         "learning is neither: the learner gets a score for what it did itself.",
         aliases=("unsupervised learning", "labels", "imitation learning"), see=("knobs", "loss_type")),
    Term("Self-supervised learning",
         "Learning from targets that the data contain: hide the next word of a text and predict it. Nobody labels "
         "anything. Language models are pretrained this way. Common confusion: this is not learning without targets. "
         "Every position has one; it needs no labeller, because the text itself provides it.",
         aliases=("self-supervised", "self-supervision")),
    Term("Online and offline learning",
         "Online learning trains on answers that the policy writes as it learns, so it can try what it has just become "
         "good at. Offline (batch) learning trains on a fixed data set and samples nothing. PPO and GRPO are online; "
         "DPO on a file of pairs is offline. Common confusion: online is not the same as on-policy. A second pass over "
         "answers that have just been written is online, but already off-policy.",
         aliases=("online learning", "offline learning", "batch learning", "online RL", "offline RL", "batch RL"),
         see=("knobs", "loss_type")),
    Term("Markov decision process",
         "The formal frame of reinforcement learning: states, actions, where an action leads, what it earns. Markov "
         "means that the state holds all that matters for what comes next, however it was reached. With the whole "
         "text as the state this holds here, unless something that matters is hidden.",
         "(S, A, P, r, γ)", ("MDP", "Markov property"), ("panel", "tokens")),
    Term("Value-based method",
         "A method that learns what actions are worth and then takes the best: the policy follows from the values. "
         "Policy gradients work the other way round: they change the policy itself and use values, if at all, as a "
         "yardstick. rlplay has two value-based methods, for tiny worlds: Q-learning and SARSA.",
         "π(s) = argmaxₐ Q(s, a)", ("value-based", "value-based credit"), ("knobs", "loss_type")),
    Term("Q-learning",
         "A value-based method: after each step the action value moves towards the reward plus the value of the best "
         "next action, whether or not that action was taken. So it is off-policy: the ε-greedy policy makes the moves, "
         "and Q is about the greedy one. It therefore ignores what exploring costs. In a tiny world the Move panel "
         "shows Q(s, ·) and each step with its numbers.",
         "Q(s, a) ← Q(s, a) + α·(r + γ·maxₐ′ Q(s′, a′) − Q(s, a))", ("DQN",), ("knobs", "loss_type"),
         algorithm="q-learning"),
    Term("SARSA",
         "A value-based method like Q-learning, but on-policy: the action value moves towards the reward plus the "
         "value of the next action that was really taken, exploring ones included. So Q counts what exploring costs. "
         "The name lists what it uses: state, action, reward, state, action.",
         "Q(s, a) ← Q(s, a) + α·(r + γ·Q(s′, a′) − Q(s, a))", see=("knobs", "algorithm"), algorithm="sarsa"),
    Term("ε-greedy",
         "How value-based methods explore: mostly they take the action that seems best; with probability ε they draw "
         "one uniformly from all actions, the best included. Common confusion: this ε is exploration_rate; the setting "
         "epsilon is the width of PPO's clip. A language model needs no such rule, because it samples.",
         "π(a | s) = ε/|A|, plus 1 − ε for the best a", ("epsilon-greedy", "exploration_rate"),
         ("knobs", "exploration_rate")),
    Term("Chain of thought",
         "Working a problem out in words before the answer. No reward has to ask for it: where it leads to right "
         "answers more often, rewarding right answers makes it likelier.",
         aliases=("reasoning", "CoT"), see=("panel", "answers")),
    Term("Tool use",
         "The model writes a call, for example to a calculator; a program runs it, and the model reads the result and "
         "continues. The result is not trained on, because the model did not write it. Common confusion: the model "
         "does not run anything. It writes text that a program recognises as a call. In rlplay's "
         "task calculator the tool is a calculator.",
         aliases=("tools", "function calling"), see=("panel", "tokens")),
)  # fmt: skip
