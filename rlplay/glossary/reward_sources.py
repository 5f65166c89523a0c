"""Where rewards come from: examples, comparisons, checks and judges, and what goes wrong with them."""

from __future__ import annotations

from rlplay.glossary.term import Term

REWARD_SOURCES = (
    Term("Pretraining",
         "Learning to predict the next token of a great deal of text, in which every token is its own target. How much "
         "later training adds to what the model can do, and how much it only brings out, is an open question.",
         aliases=("base model", "next-token prediction")),
    Term("SFT",
         "Supervised fine-tuning imitates good answers: at every position the right next token is given, and each is "
         "pulled up with the same weight. The model is never shown what not to say.",
         aliases=("supervised fine-tuning", "imitation", "instruction tuning"), see=("curve", "mean_token_accuracy"),
         algorithm="sft"),
    Term("Preference pair",
         "Two answers to one prompt and a label that says which is better: for “Explain gravity”, an explanation over "
         "“idk lol”. People find comparing easier than giving marks.",
         aliases=("chosen", "rejected", "comparison", "A/B"), see=("knobs", "labeller")),
    Term("Labeller",
         "The one who says which answer is better: a person, or a simulated labeller that sees the gold score and may "
         "err. The model learns what the labeller prefers, mistakes included.",
         aliases=("annotator", "human feedback", "label noise", "labeler"), see=("knobs", "labeller")),
    Term("Reward model",
         "A model, here a copy of the policy, that outputs a score for an answer instead of a next token, trained to "
         "score preferred "
         "answers higher. Only differences of scores mean anything, and only on answers like those it was trained on.",
         aliases=("RM", "preference model", "reward-model"), see=("curve", "accuracy"),
         algorithm="reward-model"),
    Term("Bradley–Terry",
         "The model that turns two scores into the probability that one is preferred: the sigmoid of their difference. "
         "A gap of 0.85 means 70 %.",
         "P(a ≻ b) = σ(s_a − s_b)", ("pairwise loss", "Elo"), ("curve", "margin")),
    Term("RLHF",
         "Reinforcement learning from human feedback: imitate good answers, train a reward model on comparisons, then "
         "maximise its score while a KL penalty keeps the policy near where it began. A rating in a chat changes no "
         "weights at that moment; ratings are collected and trained on later.",
         aliases=("reinforcement learning from human feedback",), see=("knobs", "algorithm")),
    Term("DPO",
         "Direct preference optimisation needs no reward model: β times the log-ratio to the reference serves as the "
         "reward. Its pairs come from a file; without a file, the frozen reference writes them here. Only the gap is "
         "trained, so the chosen answer's probability may fall too. With the same β and reference, its optimum is "
         "RLHF's if preferences follow Bradley–Terry, the reward model fits them perfectly and the pairs cover all "
         "answers.",
         aliases=("direct preference optimization", "direct preference optimisation"), see=("curve", "rewards/margins"),
         algorithm="dpo"),
    Term("Implicit reward",
         "The reward that a policy trained on preferences behaves as if it maximised: β times its log-ratio to the "
         "reference, added up over the answer. Losses without a reference use log-probabilities instead.",
         see=("lens", "implicit_reward")),
    Term("Margin",
         "How far apart the two answers of a pair are, in implicit reward or in a reward model's score. DPO, hinge and "
         "reward models train this difference alone, IPO its mean per token. ORPO and CPO also imitate the chosen "
         "answer, and KTO compares each answer with a common baseline.",
         aliases=("gap",), see=("curve", "rewards/margins")),
    Term("RLVR",
         "Reinforcement learning with verifiable rewards: a program checks the final answer or runs the tests. There "
         "is no reward model to fool, but the check can be fooled: it sees only what it was written to see.",
         aliases=("verifiable reward", "verifier", "unit tests"), see=("curve", "reward")),
    Term("Proxy",
         "A score that is trained on in place of what is really wanted: counted praise, a reward model's score, a test "
         "that passes. A good proxy rises together with the real goal at first. Optimised hard enough, the two can "
         "part. Common confusion: PPO's surrogate is not such a proxy. It stands in for the expected reward, whatever "
         "that reward measures.",
         aliases=("proxy reward", "surrogate goal"), see=("curve", "reward")),
    Term("Gold score",
         "A score that stands for what is really wanted, tracked whether or not it is rewarded. If it is not rewarded "
         "and falls while the reward rises, the policy is gaming the reward.",
         aliases=("true reward",), see=("curve", "gold/*/mean")),
    Term("Reward hacking",
         "Earning the reward without doing what it was meant for: praise in place of help, a number that happens to "
         "pass the check. The reward curve does not show it; a score that is not trained on does.",
         aliases=("reward gaming", "Goodhart", "overoptimisation", "reward design"),
         see=("curve", "gold/*/mean")),
    Term("LLM judge",
         "A language model that is asked which answer is better, or how good one is, in place of a person. It is cheap "
         "and patient but biased, for example towards length, style and answers like its own. rlplay has none built "
         "in; your reward function can call one.",
         aliases=("AI feedback", "judge")),
    Term("Constitutional AI",
         "A model criticises and rewrites its answers by a list of written principles. It is fine-tuned on the "
         "rewrites; then comparisons by a model that follows the list replace human ones about harm (Bai et al. 2022, "
         "arXiv:2212.08073).",
         aliases=("constitution", "RLAIF")),
    Term("Sim-to-real gap",
         "The difference between a stand-in used in training, such as a simulated labeller, and what it stands for. "
         "What is learned holds only as far as the stand-in is right.",
         aliases=("sim-to-real", "simulated labeller"), see=("knobs", "label_noise")),
    Term("Safety constraint",
         "Something the policy must not do even while it learns. Masking the forbidden actions ensures this. A "
         "Lagrange multiplier raises their cost until a limit holds on average, but may let them happen on the way. A "
         "fixed "
         "penalty only makes them costly, and a KL limit such as TRPO's bounds the size of an update, not what the "
         "policy does.",
         aliases=("constraint", "safe exploration", "constrained RL"), see=("knobs", "reward_weights")),
)  # fmt: skip
