"""Every per-update number, once, under the name TRL logs it by: curves, help, exports and expectations read it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """One scalar per update. A name ending in `/*` stands for a family, such as one mean per reward function."""

    name: str
    title: str
    formula: str
    unit: str
    reading: str


_ROWS = (
    Metric("reward", "Reward", "mean over completions of the weighted sum of the reward functions", "",
           "What is maximised. Rising is the point, unless the reward is wrong: then watch the gold score."),
    Metric("reward_std", "Reward std", "standard deviation of the reward over the whole batch, ddof = 1", "",
           "Spread over the batch, not within groups. At 0 a group baseline leaves no advantage to learn from."),
    Metric("frac_reward_zero_std", "Groups without signal", "share of groups whose rewards are all equal", "",
           "With a group baseline their advantage is 0 and they teach nothing: too easy, too hard or too few answers."),
    Metric("rewards/*/mean", "Reward part, mean", "mean of one reward function, before its weight", "",
           "One part of the reward; parts that pull apart show up here."),
    Metric("rewards/*/std", "Reward part, std", "standard deviation of one reward function, ddof = 1", "", ""),
    Metric("gold/*/mean", "Gold score", "mean of a score that is tracked but never trained on", "",
           "If the reward rises while this falls, the policy is gaming the reward."),
    Metric("completions/mean_length", "Length", "mean number of sampled tokens, the end token included", "tokens",
           "Nobody rewards length here; when it rises, longer answers earned more."),
    Metric("completions/min_length", "Shortest", "shortest completion", "tokens", ""),
    Metric("completions/max_length", "Longest", "longest completion", "tokens", ""),
    Metric("completions/clipped_ratio", "Truncated", "share of completions cut at max_completion_length", "",
           "Cut answers often miss their reward: raise max_completion_length or shorten the answers."),
    Metric("entropy", "Entropy", "mean over tokens of the entropy of the next-token distribution", "nats",
           "How much the policy still explores. Falling to 0 early means it has stopped searching."),
    Metric("kl", "KL to reference", "mean over tokens of k1, k2 or k3: as trained if β is in the loss, else as sampled",
           "nats",
           "Distance from the frozen reference; what beta holds back. Near 0 at the start, by construction."),
    Metric("kl_old", "KL old to new", "mean over tokens of w − log w − 1, w = new/old (k3)",
           "nats", "How far one update moved the policy. Not the KL to the reference."),
    Metric("kl_penalty", "KL penalty to old", "mean over tokens of kl_estimator to the policy that sampled", "nats",
           "The KL term of the loss where kl_anchor=old. 0 at the first optimizer step of an update, by construction."),
    Metric("kl_coef", "KL weight β", "the β that the update used", "",
           "Adapts after each update: rises while the KL is above target_kl, falls while it is below."),
    Metric("kl_old_exact", "KL of the step", "mean over all sampled tokens of Σ_v p_old·log(p_old/p_new)", "nats",
           "TRPO's own: over the whole vocabulary, never above max_kl. 0 if no step was accepted."),
    Metric("step_fraction", "Step taken", "share of the step to the KL limit that the line search accepted", "",
           "1: the first try held. 0: none did and the policy stays as it was."),
    Metric("cg_residual", "CG residual", "‖g − (F + damping)·x‖ / ‖g‖ after the last iteration", "",
           "How far the direction is from the natural gradient. Near 1: more cg_iterations or more cg_damping."),
    Metric("surrogate_gain", "Surrogate gain", "Σ weight·(w_new − w_old)·A of the accepted step", "",
           "What the update gained by its own measure, on the answers it learned from."),
    Metric("loss", "Loss", "mean of the optimizer steps' losses", "",
           "Not a measure of progress: at ratio 1 the surrogate is −mean A, near 0 wherever advantages are centred by "
           "group or whitened. Read the reward."),
    Metric("policy_loss", "Policy loss", "the loss without its KL and value terms", "", ""),
    Metric("value_loss", "Value loss", "½ mean max((v−R)², (clip(v)−R)²)", "", "The critic's error."),
    Metric("explained_variance", "Explained variance", "1 − Var(R − V) / Var(R)", "",
           "1: the critic predicts the return; 0: no better than a constant."),
    Metric("grad_norm", "Gradient norm", "norm of the whole gradient before clipping, mean over optimizer steps", "",
           "Spikes warn of an unstable step."),
    Metric("learning_rate", "Learning rate", "of the last optimizer step", "", ""),
    Metric("clip_ratio/low_mean", "Clipped low", "share of tokens with A < 0 and ratio < 1 − ε", "",
           "The surrogate's gradient is zero there. 0 with one optimizer step per batch: nothing has moved yet."),
    Metric("clip_ratio/high_mean", "Clipped high", "share of tokens with A > 0 and ratio > 1 + ε", "",
           "The surrogate's gradient is zero there. 0 with one optimizer step per batch: nothing has moved yet."),
    Metric("clip_ratio/region_mean", "Clipped", "share of tokens whose surrogate gradient is zero (low + high)", "",
           "Sign-aware, as TRL logs it; a KL term in the loss still pulls these tokens. Where an answer has one ratio, "
           "the share of answers. Steadily above 0.3: too many steps per batch or too large a rate."),
    Metric("clip_ratio/delta_mean", "Clipped at δ", "share of tokens with A < 0 and ratio > δ", "",
           "The dual clip: bad tokens that have become much likelier stop pushing. Not part of the clipped share."),
    Metric("cispo_clip_ratio", "Capped", "share of tokens with A > 0 and ratio > ε_high, whose weight is capped", "",
           "They still pull, with the weight ε_high: CISPO bounds the weight and loses no gradient."),
    Metric("ratio_outside", "Outside the band", "share of tokens with ratio outside [1 − ε, 1 + ε]", "",
           "Larger than the clipped share: tokens outside on the harmless side still pull."),
    Metric("ratio_max", "Largest ratio", "largest importance ratio in the update", "",
           "Clipping bounds the surrogate's gradient, not the ratio."),
    Metric("dynamic_sampling/dropped_groups", "Groups dropped", "groups without signal that were replaced", "groups",
           "What dynamic sampling costs: each was sampled and scored for nothing."),
    Metric("num_tokens", "Sampled so far", "completion tokens sampled so far in the run", "tokens", ""),
    Metric("vine_tokens", "Vine tokens", "tokens sampled to estimate the values of reasoning steps", "tokens",
           "What Monte-Carlo values cost, beside the answers that are trained on."),
    Metric("rewards/chosen", "Implicit reward, chosen", "mean of β·Σ(ℓ − ℓʳ) over the chosen answers", "",
           "Without a reference Σβℓ, in SimPO and ORPO β·mean ℓ. Often falls although the margin grows: only the "
           "difference is trained."),
    Metric("rewards/rejected", "Implicit reward, rejected", "the same over the rejected answers", "",
           "Far below 0: the answers that were turned down have become very unlikely."),
    Metric("rewards/margins", "Margin", "mean of implicit reward chosen − rejected", "",
           "What a preference loss widens, if it can, without end."),
    Metric("rewards/accuracies", "Pairs told apart", "share of pairs with a margin above 0", "",
           "At the first update of a stage policy and reference are one: every margin is 0 up to rounding."),
    Metric("logps/chosen", "Log-probability, chosen", "mean over chosen answers of Σℓ; of mean ℓ in SimPO and ORPO",
           "nats", "Falling is no contradiction: a pair is told apart just as well if the other falls faster."),
    Metric("logps/rejected", "Log-probability, rejected", "mean over rejected answers of Σℓ; of mean ℓ in SimPO, ORPO",
           "nats", ""),
    Metric("nll_loss", "Imitation loss", "mean −ℓ over the tokens of the chosen answers", "nats",
           "The part of the loss that imitates, before its weight."),
    Metric("log_odds_chosen", "Log odds ratio", "mean of log odds(chosen) − log odds(rejected)", "",
           "What ORPO widens."),
    Metric("log_odds_ratio", "ORPO term", "mean of log σ(log odds ratio)", "", "Rises to 0."),
    Metric("kto/kl", "KTO baseline", "max(0, mean Σ(ℓ − ℓʳ) of answers put after other prompts)", "nats per answer",
           "What an answer has to beat to count as a gain; TRL logs it as kl."),
    Metric("mean_token_accuracy", "Token accuracy", "share of the chosen answers' tokens that were the likeliest", "",
           "How well the policy already imitates."),
    Metric("accuracy", "Reward model accuracy", "share of pairs whose chosen answer scores higher", "",
           "One half is guessing. Pairs are new in every update, so this is no memory; ties stay a coin toss."),
    Metric("margin", "Reward model margin", "mean of the chosen answer's score − the rejected one's", "", ""),
    Metric("mean_reward", "Mean score", "mean score of the compared answers by the reward model", "",
           "Only differences are trained; center_rewards_coefficient draws it to 0."),
    Metric("min_reward", "Lowest score", "lowest score of a compared answer by the reward model", "", ""),
    Metric("max_reward", "Highest score", "highest score of a compared answer by the reward model", "", ""),
    Metric("label_accuracy", "Right labels", "share of labels that agree with the gold score, ties left out", "",
           "Below 1 the labeller errs; label_noise says how much."),
    Metric("eval_reward", "Held-out reward", "mean reward on prompts that are never trained on", "",
           "Learning that carries over shows here too."),
    Metric("eval_rewards/*/mean", "Held-out reward part", "one reward function on held-out prompts", "", ""),
    Metric("eval_rewards/*/std", "Held-out reward part, std", "its standard deviation, ddof = 1", "", ""),
    Metric("eval_gold/*/mean", "Held-out gold score", "a gold score on held-out prompts", "", ""),
    Metric("eval_completions/mean_length", "Held-out length", "mean number of tokens, held out", "tokens", ""),
    Metric("eval_completions/min_length", "Held-out shortest", "shortest completion, held out", "tokens", ""),
    Metric("eval_completions/max_length", "Held-out longest", "longest completion, held out", "tokens", ""),
    Metric("eval_completions/clipped_ratio", "Held-out truncated", "share cut at max_completion_length", "", ""),
)  # fmt: skip

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}


def describe(name: str) -> Metric | None:
    """The registry row of a logged name; `rewards/correct/mean` finds `rewards/*/mean`. None if there is none."""
    if name in METRICS:
        return METRICS[name]
    head, _, rest = name.partition("/")
    _, _, tail = rest.rpartition("/")
    return METRICS.get(f"{head}/*/{tail}")


def titled(name: str) -> str:
    """What a logged name is called in words, one of a family with its part: "Gold score helpful"; else as it is."""
    row = describe(name)
    if row is None or row.name == name:
        return name if row is None else row.title
    title, comma, kind = row.title.partition(",")
    part = name.partition("/")[2].rpartition("/")[0]
    return f"{title} {part}{comma}{kind}"
