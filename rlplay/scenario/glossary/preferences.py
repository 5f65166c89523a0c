"""Where rewards come from: examples, comparisons, checks and judges, and what goes wrong with them."""

from __future__ import annotations

from rlplay.scenario.glossary.term import Term

PREFERENCES = (
    Term("Pretraining",
         "Learning to predict the next token of a great deal of text, every token being its own target. It is where "
         "abilities come from; what follows mostly decides which of them are used.",
         aliases=("base model", "next-token prediction")),
    Term("SFT",
         "Supervised fine-tuning imitates good answers: every token has a right one, and all are pulled up alike. "
         "It is never shown what not to say.",
         aliases=("supervised fine-tuning", "imitation", "instruction tuning"), see=("curve", "nll_loss"), play="dpo",
         algorithm="sft"),
    Term("Preference pair",
         "Two answers to one prompt and a label that says which is better: for “Explain gravity”, an explanation over "
         "“idk lol”. People find comparing easier than giving marks.",
         aliases=("chosen", "rejected", "comparison", "A/B"), see=("knobs", "labeller"), play="dpo"),
    Term("Labeller",
         "Who says which answer is better: a person, or a stand-in that sees a hidden score and may err. What it "
         "prefers is what is learned, its mistakes included.",
         aliases=("annotator", "human feedback", "label noise", "labeler"), see=("knobs", "labeller"), play="rlhf"),
    Term("Reward model",
         "A copy of the model that gives an answer a score in place of a next token, trained so that preferred answers "
         "score higher. Only differences of scores mean anything, and only near the answers it was trained on.",
         aliases=("RM", "preference model", "reward-model"), see=("curve", "accuracy"), play="rlhf",
         algorithm="reward-model"),
    Term("Bradley–Terry",
         "The model that turns two scores into the probability that one is preferred: the sigmoid of their difference. "
         "A gap of 0.85 means 70 %.",
         "P(a ≻ b) = σ(s_a − s_b)", ("pairwise loss", "Elo"), ("curve", "margin"), "rlhf"),
    Term("RLHF",
         "Reinforcement learning from human feedback: imitate good answers, train a reward model on comparisons, then "
         "maximise its score while β holds the policy near where it began.",
         aliases=("reinforcement learning from human feedback",), see=("knobs", "algorithm"), play="rlhf"),
    Term("DPO",
         "Direct preference optimisation learns from pairs without a reward model or new answers: the log-ratio to the "
         "reference serves as the reward. Only the gap is trained, so the chosen answer's probability may fall as "
         "well. It ends where RLHF does if preferences follow Bradley–Terry, the reward model fits them perfectly "
         "and both reach their optimum.",
         aliases=("direct preference optimization", "direct preference optimisation"), see=("curve", "rewards/margins"),
         play="dpo", algorithm="dpo"),
    Term("Implicit reward",
         "The reward that a preference-trained policy behaves as if it had: β times how much likelier than under the "
         "reference it makes a token.",
         see=("lens", "implicit_reward"), play="dpo"),
    Term("Margin",
         "How far apart the two answers of a pair are in implicit reward, or in a reward model's score. Losses on "
         "pairs train this difference and nothing else.",
         aliases=("gap",), see=("curve", "rewards/margins"), play="dpo"),
    Term("RLVR",
         "Reinforcement learning with verifiable rewards: a program checks the final answer or runs the tests. No "
         "reward model can be fooled, but the check can: it sees only what it was written to see.",
         aliases=("verifiable reward", "verifier", "unit tests"), see=("curve", "reward"), play="learn-to-think"),
    Term("Reward hacking",
         "Earning the reward without doing what it was meant for: praise in place of help, a number that happens to "
         "pass the check. The reward curve does not show it; a score that is not trained on does.",
         aliases=("reward gaming", "Goodhart", "overoptimisation", "reward design", "specification"),
         see=("curve", "gold/*/mean"), play="flattery"),
    Term("Gold score",
         "What is really wanted, measured beside the reward and never trained on. When the reward rises and it falls, "
         "the reward is being gamed.",
         aliases=("true reward", "proxy"), see=("curve", "gold/*/mean"), play="flattery"),
    Term("LLM judge",
         "A language model that is asked which answer is better, or how good one is, in place of a person. Cheap and "
         "patient, with tastes of its own: length, style, its own kind of answer. rlplay has none built in; a reward "
         "function of yours can call one.",
         aliases=("AI feedback", "judge")),
    Term("Constitutional AI",
         "A model criticises and rewrites its answers by a list of written principles, and comparisons made by a model "
         "following that list take the place of human ones (Bai et al. 2022, arXiv:2212.08073).",
         aliases=("constitution", "RLAIF")),
    Term("Sim-to-real gap",
         "What is learned from a stand-in, a programmed labeller for one, holds only as far as the stand-in is right.",
         aliases=("sim-to-real", "simulated labeller"), see=("knobs", "label_noise")),
    Term("Safety constraint",
         "Something the policy must not do while it learns, not only afterwards. A penalty makes it dear, a limit such "
         "as TRPO's forbids it; a reward that does not mention it does neither.",
         aliases=("constraint", "safe exploration"), see=("knobs", "kl_placement")),
)  # fmt: skip
