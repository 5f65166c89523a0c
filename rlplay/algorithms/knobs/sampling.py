"""The settings of sampling."""

from __future__ import annotations

from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.value_losses import VALUE_LOSSES

SAMPLING: tuple[Knob, ...] = (
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
)  # fmt: skip
