"""The registry of per-update numbers under TRL's names, for curves, help, exports and expectations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlplay.trace.plugins import additions, refuse

if TYPE_CHECKING:
    from rlplay.trace.update import Update

ROUNDING = 1e-6
"""The rounding error of single precision where log-probabilities, or numbers near 1, should cancel exactly."""


@dataclass(frozen=True)
class Metric:
    """One scalar per update. A name with `/*` is a family, such as one mean per reward function.

    A value below `noise` is 0 up to rounding. Those of other packages have a `value`: what to compute of a finished
    update, None where it does not apply.
    """

    name: str
    title: str
    formula: str
    unit: str
    reading: str
    noise: float = 1e-9
    value: Callable[[Update], float | None] | None = None


_ROWS = (
    Metric("reward", "Reward", "mean over completions of the weighted sum of the reward functions", "",
           "What training maximises, apart from penalties such as KL. A rise is good only as far as the reward "
           "measures what is wanted: compare the gold score, where a task has one."),
    Metric("reward_std", "Reward std", "standard deviation of the reward over the whole batch, ddof = 1", "",
           "The spread over the whole batch, not within groups. At 0 all answers earned the same: the rewards give "
           "nothing to compare."),
    Metric("reward_p10", "Reward, 10 %", "the reward that 10 % of the completions do not exceed, interpolated", "",
           "Lower edge of the shade at the reward."),
    Metric("reward_p90", "Reward, 90 %", "the reward that 90 % of the completions do not exceed, interpolated", "",
           "Upper edge of the shade at the reward."),
    Metric("frac_reward_zero_std", "Groups without signal",
           "share of groups of two or more answers whose rewards are all equal", "",
           "With an outcome reward and a group baseline, equal rewards cancel out: the prompt is too easy, too hard, "
           "or sampled too few times. Step scores, separately normalised rewards and penalties inside the reward can "
           "still distinguish the answers."),
    Metric("rewards/*/mean", "Reward part, mean", "mean of one reward function, before its weight", "",
           "Compare the parts: one may rise while another falls."),
    Metric("rewards/*/std", "Reward part, std", "standard deviation of one reward function, ddof = 1", "", ""),
    Metric("gold/*/mean", "Gold score", "mean of a score that is tracked whether or not it is rewarded", "",
           "It stands for what is really wanted. If the reward rises while this falls, the policy is gaming the "
           "reward."),
    Metric("completions/mean_length", "Length", "mean number of sampled tokens, the end token included", "tokens",
           "It can rise because longer answers earn more, because a reward counts words, or because averaging within "
           "each answer penalises a long wrong answer less per token (see Dr. GRPO). It also varies with the prompts "
           "drawn."),
    Metric("completions/min_length", "Shortest", "shortest completion", "tokens", ""),
    Metric("completions/max_length", "Longest", "longest completion", "tokens", ""),
    Metric("completions/clipped_ratio", "Truncated", "share of completions cut at max_completion_length", "",
           "A cut answer can lose its reward, or earn one for what it had not finished. If many are cut, raise "
           "max_completion_length."),
    Metric("completions/distinct", "Different answers",
           "number of different answers to a prompt, token for token, mean over prompts", "",
           "At most num_generations. 1: all answers to a prompt are the same, so their rewards are too, and there is "
           "nothing to compare."),
    Metric("entropy", "Entropy", "mean over tokens of the entropy of the next-token distribution", "nats",
           "How undecided the policy is; 0 is certainty. In training on rewards, a fall towards 0 before the reward "
           "is high means that exploration has stopped too early."),
    Metric("kl", "KL to reference",
           "mean over tokens of k1, k2, k3 or the exact KL: as trained if β is in the loss, else as sampled", "nats",
           "How far the policy is from its frozen reference; beta keeps it close. It starts near 0, because policy and "
           "reference are equal at the start of each run or stage."),
    Metric("teacher_kl", "KL to teacher", "mean over tokens of ℓ_old − ℓ_T (k1), ℓ_T the teacher's log-probability",
           "nats", "How far the policy that sampled is from its teacher, estimated at the tokens it wrote: KL(policy ‖ "
           "teacher). The estimate may be below 0."),
    Metric("distillation_loss", "Distillation", "mean over tokens of the teacher's term of the loss, as trained", "",
           "What distillation minimises. Of sampled_token the value says little; only its gradient is meant. TRL logs "
           "it as self_distillation/distillation_loss."),
    Metric("self_distillation/reprompt_sample_fraction", "Answers with a teacher",
           "share of the answers whose teacher read more than the policy", "",
           "With teacher_context=group, an answer has a teacher only if another one of its group succeeded."),
    Metric("kl_old", "KL old to new", "mean over tokens of w − log w − 1, w = new/old (k3)",
           "nats", "How far one update moved the policy. Not the KL to the reference."),
    Metric("kl_penalty", "KL penalty to old", "mean over tokens of kl_estimator to the policy that sampled", "nats",
           "The KL term of the loss where kl_anchor=old. At the first optimizer step of an update it is 0, because "
           "nothing has moved yet."),
    Metric("kl_coef", "KL weight β", "the β that the update used", "",
           "kl_ctrl adapts it after each update: up if the KL is above target_kl, down if below. PPO's rule allows a "
           "factor of 1.5 either way."),
    Metric("entropy_coef", "Entropy bonus η", "mean over the steps of η after the step", "",
           "It rises by entropy_coef_delta where a step's tokens have an entropy of at most entropy_target, and falls "
           "where they have more."),
    Metric("entropy_coef_used", "Entropy bonus used", "mean over the steps of η in the loss", "",
           "0 after a step with an entropy above entropy_target, and in the first step."),
    Metric("kl_old_exact", "KL of the step", "mean over all sampled tokens of Σ_v p_old·log(p_old/p_new)", "nats",
           "TRPO's constraint, summed over the whole vocabulary and never above max_kl. 0 means that no step was "
           "accepted."),
    Metric("step_fraction", "Step taken", "share of the step to the KL limit that the line search accepted", "",
           "1: the longest step was accepted. 0: none was, and the policy did not move."),
    Metric("cg_residual", "CG residual", "‖g − (F + damping)·x‖ / ‖g‖ after the last iteration", "",
           "The error of the search direction; 0 is the exact solution. If it stays near 1, raise cg_iterations or "
           "cg_damping."),
    Metric("surrogate_gain", "Surrogate gain", "Σ weight·(w_new − w_old)·A of the accepted step", "",
           "How much better the update's own objective became, on the answers it learned from."),
    Metric("loss", "Loss", "mean of the optimizer steps' losses", "",
           "Learning from examples or pairs: lower is better. Learning from rewards: no measure of progress. PPO and "
           "GRPO begin each update with a policy loss of minus the mean advantage, and centred advantages keep that "
           "near 0. Watch the reward instead.", ROUNDING),
    Metric("policy_loss", "Policy loss", "the loss without its KL, value and entropy terms", "", "", ROUNDING),
    Metric("aux_loss", "Router balance", "experts·Σ (share of choices)·(mean probability), over experts", "",
           "The experts that a token is sent to, if all are busy alike; the number of all experts, if all tokens go to "
           "one."),
    Metric("value_loss", "Value loss", "½ mean max((v−R)², (clip(v)−R)²)", "",
           "The critic's error on the returns that it learns to predict."),
    Metric("explained_variance", "Explained variance", "1 − Var(R − V) / Var(R)", "",
           "1: the critic predicts every return, up to a constant error. 0: no better than a constant. Below 0: worse "
           "than a constant."),
    Metric("td_error", "TD error", "mean over the update's moves of |r + γ·following − Q(s, a)|", "",
           "How far the values of moves were from their targets. It falls as Q settles. Where moves slip it does not "
           "reach 0, because the same move leads to different squares."),
    Metric("bellman_residual", "Bellman residual", "mean over squares of |V(s) − Σ p·(r + γ·V(s′))|", "",
           "How well the values fit the world's own rules, which are known exactly; 0 solves the Bellman equation. "
           "Q-learning: V = max Q, for the best move. SARSA and a critic: on average over the policy's moves. Squares "
           "that were never visited count, too."),
    Metric("greedy_rate", "Greedy rate", "share of situations where the likeliest move or pick is one of the best", "",
           "What a policy that always takes its likeliest move would get right. It can reach 1 while the best move is "
           "hardly likelier than the rest, so sampled moves are still mostly wrong. The best moves come from the "
           "world's rules and γ; equally likely moves share."),
    Metric("greedy_reward", "Greedy reward", "expected sum of an episode's rewards, always with the best move by Q", "",
           "Computed from the world's rules, not sampled. Equally good moves share. The greedy policy makes no moves "
           "in training; a greedy policy that walks in circles pays for all of its moves."),
    Metric("behaviour_reward", "ε-greedy reward", "expected sum of an episode's rewards under the ε-greedy policy", "",
           "Computed from the world's rules, not sampled: what the reward would be on average over very many episodes. "
           "The gap to the greedy reward is what exploring costs."),
    Metric("grad_norm", "Gradient norm", "norm of the whole gradient before clipping, mean over optimizer steps", "",
           "A spike warns of an unstable step."),
    Metric("learning_rate", "Learning rate", "of the last optimizer step", "",
           "Adam's step size, or α of Q-learning and SARSA. With TRPO only the value head uses it."),
    Metric("weights/changed", "Weights changed", "share that the update changed, of some thousands", "",
           "Recorded of other trainers. Rows of an embedding whose tokens do not occur stay as they are. Near 0 with a "
           "gradient: the steps are smaller than half the distance between two numbers of the weights' type."),
    Metric("weights/step", "Weight step", "‖change‖ / ‖weights‖, the median over up to 64 trained tensors", "",
           "How far the update moved the weights, measured on some thousands. 1e-5: a thousand such updates, all in "
           "one direction, move them by a hundredth."),
    Metric("weights/trained", "Weights trained", "share of the model's weights that the optimizer may change", "",
           "1: all. With LoRA usually below 0.02; with a frozen model 0."),
    Metric("weights/matrices", "Matrices trained", "tensors of two and more dimensions that may change", "",
           "0: only vectors are trained, such as biases or the scales of norms."),
    Metric("weights/rounding", "Weight precision", "distance from 1 to the next number, in the weights' type", "",
           "bfloat16: 0.0078, float32: 1.2e-7. A step of less than about half of it, as a share of a weight, is "
           "rounded away."),
    Metric("clip_ratio/low_mean", "Clipped low",
           "share of tokens with A < 0 and ratio < 1 − ε; in GMPO, ℓ − ℓ_old < −ε; in DPPO, p < p_old − ε", "",
           "The surrogate's gradient is zero there. 0 with one optimizer step per batch, when nothing has moved yet "
           "and the ratio does not start from another sampler, and for a surrogate that does not clip."),
    Metric("clip_ratio/high_mean", "Clipped high",
           "share of tokens with A > 0 and ratio > 1 + ε_high; in GMPO, ℓ − ℓ_old > ε_high; in DPPO, "
           "p > p_old + ε_high", "",
           "The surrogate's gradient is zero there. 0 with one optimizer step per batch, when nothing has moved yet "
           "and the ratio does not start from another sampler, and for a surrogate that does not clip."),
    Metric("clip_ratio/region_mean", "Clipped", "share of tokens clipped low or high: no surrogate gradient", "",
           "Sign-aware, as TRL logs it; a KL or entropy term in the loss, and the shared weights, still move these "
           "tokens. Where an answer has one ratio, the share of answers. If it stays above about 0.3, take fewer steps "
           "per batch or lower the learning rate."),
    Metric("clip_ratio/delta_mean", "Clipped at δ", "share of tokens with A < 0 and ratio > δ", "",
           "The dual clip: the loss stops pushing bad tokens that have become much likelier. Not part of the clipped "
           "share."),
    Metric("cispo_clip_ratio", "Capped", "share of tokens with A > 0 and ratio > ε_high, whose weight is capped", "",
           "Capped weights at A < 0 are not counted. These tokens keep a gradient with the weight ε_high: CISPO "
           "bounds the weight and drops no gradient."),
    Metric("ratio_outside", "Outside the band",
           "share of tokens with ratio outside [1 − ε, 1 + ε_high]; in GMPO, ℓ − ℓ_old outside [−ε, ε_high]", "",
           "At least the clipped share: tokens outside on the other side keep their gradient. Only a surrogate that "
           "clips has such a band."),
    Metric("ratio_max", "Largest ratio", "largest importance ratio in the update", "",
           "Clipping bounds the surrogate's gradient, not the ratio."),
    Metric("sampling/importance_sampling_ratio/min", "Smallest correction", "least factor c for the sampler", "",
           "After its bounds; where an answer has one factor, over answers. 0: something was left out."),
    Metric("sampling/importance_sampling_ratio/mean", "Mean correction", "mean factor c for the sampler", "",
           "After its bounds. Without bounds about 1 on average over very many samples."),
    Metric("sampling/importance_sampling_ratio/max", "Largest correction", "largest factor c for the sampler", "",
           "After its bounds. At importance_sampling_clip_max: some were cut."),
    Metric("sampling/importance_sampling_ratio/masked", "Masked for the sampler",
           "share of tokens left out because policy and sampler are too far apart", "",
           "By importance_sampling_mode or rollout_rs. What is left out teaches nothing: near 1, the update stands "
           "still."),
    Metric("sampling/sampling_logp_difference/mean", "Sampler's difference",
           "mean over sampled tokens of |ℓ − ℓ_sampler|, policy before the update", "nats",
           "0: sampler and policy agree about every token. Precision, older weights and a cut that counts raise it."),
    Metric("sampling/sampling_logp_difference/max", "Sampler's largest difference",
           "largest |ℓ − ℓ_sampler| of a sampled token", "nats", ""),
    Metric("mismatch_kl", "Mismatch KL", "mean over sampled tokens of w − log w − 1, w = policy/sampler (k3)", "nats",
           "An estimate of KL(sampler ‖ policy), as prime-rl logs it. Watch whether it grows over the updates. With "
           "old_logprobs_of=sampler each token is taken when a step first sees it, after the steps before."),
    Metric("sample/staleness_mean", "Staleness", "weights that the sampler has got since those of the answers", "syncs",
           "As TRL's AsyncGRPO counts: with weight_sync_steps=1 they are updates, with 0 it stays 0, however old the "
           "weights get."),
    Metric("sample/dropped_stale_total", "Answers too stale", "answers older than max_staleness, thrown away",
           "answers", "What the lag costs: another program would have sampled them in vain. Here they are counted."),
    Metric("dynamic_sampling/dropped_groups", "Groups dropped", "groups without signal that were left out", "groups",
           "What dynamic sampling costs: these groups were sampled and scored, but not trained on."),
    Metric("retokenized/answers", "Answers retokenized", "share of answers whose tokens are not those sampled", "",
           "With retokenize_turns: the text was cut into other tokens, or the chat template rewrote an earlier turn."),
    Metric("retokenized/tokens", "Tokens retokenized", "share of the sampled tokens that are not trained on", "",
           "With retokenize_turns: other tokens with the same text took their place, or the template left them out."),
    Metric("num_tokens", "Tokens so far", "tokens of the answers of all updates so far, sampled or given",
           "tokens", "rlplay does not count prompts. TRL, whose number a recording of its runs has, counts them."),
    Metric("epoch", "Epoch", "how often training has gone through its prompts or examples", "",
           "Only in recordings of other trainers, as these log it."),
    Metric("step_time", "Time of the steps", "seconds of the update's optimizer steps, with their sampling", "s",
           "Only in recordings of TRL: the sum over the update's steps."),
    Metric("vine_tokens", "Vine tokens", "tokens sampled to estimate the values of steps or turns", "tokens",
           "What Monte Carlo values cost, on top of the answers that are trained on."),
    Metric("rewards/chosen", "Implicit reward, chosen", "mean of β·Σ(ℓ − ℓʳ) over the chosen answers", "",
           "Without a reference it is β·Σℓ, in SimPO and ORPO β·mean ℓ. It may fall while the margin grows: DPO "
           "trains only the difference.", ROUNDING),
    Metric("rewards/rejected", "Implicit reward, rejected", "the same over the rejected answers", "",
           "With a reference: below 0, the policy finds these answers less likely than the reference does. Without "
           "one (SimPO, "
           "CPO, ORPO) it is always below 0.", ROUNDING),
    Metric("rewards/margins", "Margin", "mean of implicit reward chosen − rejected", "",
           "Above 0, the chosen answers are ahead on average. Plain DPO never stops widening it; hinge stops at 1, and "
           "IPO aims at a fixed gap per token.", ROUNDING),
    Metric("rewards/accuracies", "Preference accuracy", "share of pairs with a margin above 0", "",
           "A tie counts as behind, as in TRL; so does a lead within rounding (1e-6). At the first optimizer step of a "
           "stage with a reference it is 0: policy and reference are equal, so every pair ties."),
    Metric("logps/chosen", "Log-probability, chosen", "mean over chosen answers of Σℓ; of mean ℓ in SimPO and ORPO",
           "nats", "Learning from pairs, it may fall while the margin grows, if the rejected answers fall faster. "
           "Learning from examples, it should rise."),
    Metric("logps/rejected", "Log-probability, rejected", "mean over rejected answers of Σℓ; of mean ℓ in SimPO, ORPO",
           "nats", ""),
    Metric("nll_loss", "Imitation loss", "mean −ℓ over the tokens of the chosen answers", "nats",
           "The part of the loss that imitates, before its weight."),
    Metric("log_odds_chosen", "Log odds ratio", "mean of log odds(chosen) − log odds(rejected)", "",
           "ORPO widens it, besides imitating."),
    Metric("log_odds_ratio", "ORPO term", "mean of log σ(log odds ratio)", "",
           "ORPO's preference term without its factor −β. It rises towards 0 as the chosen answers get ahead."),
    Metric("kto/kl", "KTO baseline",
           "max(0, mean Σ(ℓ − ℓʳ) of answers paired with the wrong prompts)", "nats per answer",
           "The log-ratio that an answer has to beat to count as a gain. TRL logs it as kl."),
    Metric("mean_token_accuracy", "Token accuracy", "share of the chosen answers' tokens that were the likeliest", "",
           "How often the policy's likeliest token, before the update, was the given one."),
    Metric("accuracy", "Reward model accuracy", "share of pairs whose chosen answer scores higher; equal scores: half",
           "", "Guessing gets half. Unless a file brings the pairs, the reference writes new ones for every update."),
    Metric("margin", "Reward model margin", "mean of the chosen answer's score − the rejected one's", "", ""),
    Metric("mean_reward", "Mean score", "mean score of the compared answers by the reward model", "",
           "The loss trains differences only, so this level means nothing by itself; center_rewards_coefficient pulls "
           "it towards 0."),
    Metric("min_reward", "Lowest score", "lowest score of a compared answer by the reward model", "", ""),
    Metric("max_reward", "Highest score", "highest score of a compared answer by the reward model", "", ""),
    Metric("frac_pairs_tied", "Ties", "share of pairs whose answers are the same text or have the same score", "",
           "They carry no preference, so they get no label and teach nothing."),
    Metric("label_accuracy", "Right labels",
           "share of labels that agree with the gold score, among pairs whose gold scores differ", "",
           "Below 1, some labels contradict the gold score: errors from label_noise, or a person or a file that "
           "judges otherwise."),
    Metric("eval_reward", "Held-out reward", "mean reward on prompts that are kept out of training", "",
           "Learning shows here too if it carries over to new prompts. It is the reward of the current stage: other "
           "reward weights change the scale."),
    Metric("eval_nll", "Forgetting", "mean over tokens of −log p of stories like those of its pretraining", "nats",
           "Only for the bundled model, which read such stories before and never trains on these. A rise means that it "
           "forgets them while it learns something else. A KL penalty to the reference usually slows that."),
    Metric("eval_rewards/*/mean", "Held-out reward part", "one reward function on held-out prompts", "", ""),
    Metric("eval_rewards/*/std", "Held-out reward part, std", "its standard deviation, ddof = 1", "", ""),
    Metric("eval_gold/*/mean", "Held-out gold score", "a gold score on held-out prompts", "", ""),
    Metric("eval_completions/mean_length", "Held-out length", "mean number of tokens, held out", "tokens", ""),
    Metric("eval_completions/min_length", "Held-out shortest", "shortest completion, held out", "tokens", ""),
    Metric("eval_completions/max_length", "Held-out longest", "longest completion, held out", "tokens", ""),
    Metric("eval_completions/clipped_ratio", "Held-out truncated", "share cut at max_completion_length", "", ""),
)  # fmt: skip

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}

ADDED: dict[str, Metric] = {}
"""Those of other packages, which are computed."""


def join_metrics() -> None:
    """Add the metrics of other packages."""
    for name, metric in additions("rlplay.metrics", Metric, METRICS).items():
        if metric.value is None:
            refuse("rlplay.metrics", name, "it has no value, a function of an update")
        else:
            ADDED[name] = METRICS[name] = metric


def describe(name: str) -> Metric | None:
    """The row of a logged name: `rewards/correct/mean` finds `rewards/*/mean`. None if there is none."""
    if name in METRICS:
        return METRICS[name]
    head, _, rest = name.partition("/")
    _, _, tail = rest.rpartition("/")
    return METRICS.get(f"{head}/*/{tail}")


def pair_of(name: str) -> tuple[str, bool, str] | None:
    """The metrics of "reward over gold/correct/mean" or "reward and gold/correct/mean"; None if it names no two.

    Between them, whether they share a scale ("and"), because both have the same unit.
    """
    for word, shared in ((" over ", False), (" and ", True)):
        first, found, second = (part.strip() for part in name.partition(word))
        if found and describe(first) is not None and describe(second) is not None:
            return first, shared, second
    return None


def means_the_same(name: str) -> bool:
    """Whether a metric is the same quantity in every stage of a pipeline, so that its curve may run on.

    Most are not, because the loss, the answers or the reward change. Numbers from held-out prompts are, except the
    reward, which a stage may combine differently.
    """
    return name == "num_tokens" or (name.startswith("eval_") and name != "eval_reward")


def heading(name: str) -> str:
    """A metric's title as the heading of a column."""
    row = describe(name)
    return name if row is None else row.title


def titled(name: str) -> str:
    """The title of a logged name, with the part if it is one of a family: "Gold score helpful"; else the name."""
    row = describe(name)
    if row is None or row.name == name:
        return heading(name)
    title, comma, kind = row.title.partition(",")
    part = name.partition("/")[2].rpartition("/")[0]
    return f"{title} {part}{comma}{kind}"
