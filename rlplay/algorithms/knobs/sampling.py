"""The settings of sampling."""

from __future__ import annotations

from rlplay.algorithms.knobs.knob import Knob
from rlplay.algorithms.value_losses import VALUE_LOSSES

_POLICY_GRADIENT = ("loss_type", ("policy_gradient",))

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
    Knob("min_p", "Min-p", "sampling", "Leaves out tokens with less than this share of the likeliest's probability.",
         "0: none. Larger: less exploration where the policy is sure of a token. Log-probabilities, ratio, entropy "
         "and KL are still those of all tokens, as with top_p.", 0.0, 1.0, 0.05),
    Knob("repetition_penalty", "Repetition penalty", "sampling",
         "Divides the logit of a token that prompt or answer has already; a negative one is multiplied.",
         "1: none. Above 1: less repetition; below: more. Log-probabilities, ratio, entropy and KL are still those "
         "without it, as in TRL.", 0.1, 10.0, 0.05),
    Knob("sampler_dtype", "Sampler's precision", "sampling", "Precision of the weights that sample.",
         "same: the policy's. bfloat16: a copy, computed in bfloat16. int8: of linear layers, the weights of each "
         "output are rounded to 255 steps; embeddings, a head that shares theirs, and adapters are not.",
         needs=_POLICY_GRADIENT),
    Knob("sampler_lag", "Sampler's lag", "sampling", "Answers come from the weights of so many updates ago.",
         "0: from the newest ones. Above: as in asynchronous training, where answers wait while others are learned "
         "from. The first updates all get answers of the first weights. max_staleness still holds.", 0, 32, 1,
         needs=_POLICY_GRADIENT),
    Knob("weight_sync_steps", "Sync every", "sampling", "Updates between two times that the sampler takes the weights.",
         "1: every update. 0: never again, as with an adapter that does not arrive: the sampler keeps what it has.",
         0, 1000, 1, needs=_POLICY_GRADIENT),
    Knob("max_staleness", "Max staleness", "sampling",
         "Answers whose weights are more than so many syncs old are thrown away.",
         "Smaller: less off-policy, more answers in vain. Those thrown away are counted, and not computed. Later ones "
         "take their place.", 0, 32, 1, needs=_POLICY_GRADIENT),
    Knob("logprobs_mode", "Sampler's log-probs", "sampling", "What the sampler says of its tokens.",
         "raw_logprobs: the model's log-probabilities. processed_logprobs: those after repetition_penalty, top_k, "
         "top_p and min_p, from which the token was really drawn. In vLLM temperature counts in these alone.",
         needs=_POLICY_GRADIENT),
    Knob("old_logprobs_of", "Old log-probs", "sampling", "Whose log-probabilities the ratio starts from.",
         "trainer: scores the answers again where the sampler is not the policy, so the ratio begins at 1. sampler: "
         "what the sampler reported, without that pass (verl's bypass mode, TRL's AsyncGRPO, prime-rl), so the ratio "
         "begins at the mismatch.", needs=_POLICY_GRADIENT),
    Knob("exploration_rate", "Exploration ε", "sampling", "Share of moves drawn from all moves, the best included.",
         "0: always the best move by Q. 1: every move equally often. In between: ε-greedy.", 0.0, 1.0, 0.05,
         needs=("loss_type", tuple(VALUE_LOSSES))),
    Knob("max_tool_calling_iterations", "Tool rounds", "sampling",
         "Turns of an answer whose tool calls are made; empty: all.",
         "An answer ends with the turn whose calls are made no more, as in TRL.", 0, 1000, 1, needs=_POLICY_GRADIENT),
    Knob("dynamic_sampling", "Dynamic sampling", "sampling", "Replaces groups whose rewards are all equal.",
         "More groups teach something, at the cost of more sampling (DAPO)."),
    Knob("retokenize_turns", "Retokenize turns", "sampling", "Trains on the text of each turn, tokenized again.",
         "As in a trainer that gets chat messages: text may be cut into other tokens than were sampled, and the chat "
         "template may strip the thinking of earlier turns. off: trains on what was sampled.",
         needs=("loss_type", ("policy_gradient",))),
    Knob("candidates", "Top-k recorded", "sampling", "Likeliest tokens recorded at each position.",
         "Limits what you can inspect; does not change training.", 1, 4096, 1),
    Knob("observe", "Passes to look at", "sampling", "Whether passes are made whose numbers are only looked at.",
         "light: skips scoring the answers again after the update, and skips the reference unless the training "
         "needs it. What only they give, such as kl and kl_old, is then absent; training is the same."),
)  # fmt: skip
