"""Which settings fit each other: the conditions that a combination has to meet, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.pair_losses import IMITATED, PAIR_LOSSES, PairLoss, mixture
from rlplay.algorithms.scales import SCALES
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.text import quote

Rules = Iterator[tuple[bool, str]]


def rules(s: Settings) -> Rules:
    """The conditions on the settings in order: whether each is met, and the line to refuse them with if not."""
    if s.loss_type in VALUE_LOSSES:
        yield from _value_rules(s)
    elif s.loss_type == "policy_gradient":
        yield from _policy_rules(s)
    else:
        yield from _pair_rules(s)


_SIBLINGS = {
    "baseline": tuple(name for name, baseline in BASELINES.items() if baseline.siblings),
    "scale_rewards": tuple(name for name, scale in SCALES.items() if scale.siblings),
    "multi_objective_aggregation": ("normalize_then_sum",),
    "reward_stream": ("process_normalized",),
    "dynamic_sampling": (True,),
}
"""Settings that compare the completions of one prompt with each other."""


def _policy_rules(s: Settings) -> Rules:
    yield from _reward_rules(s)
    yield from _baseline_rules(s)
    yield from _surrogate_rules(s)
    yield from _correction_rules(s)
    yield from _kl_rules(s)
    yield from _token_rules(s)
    yield from _teacher_rules(s)
    completions = s.num_prompts * s.num_generations
    yield (
        s.num_minibatches <= completions,
        f"num_minibatches={s.num_minibatches} is more than the {completions} completions of an update",
    )


def _reward_rules(s: Settings) -> Rules:
    """What an answer is paid, and how that becomes a return."""
    yield (
        s.returns != "gae" or s.baseline == "value",
        "returns=gae needs baseline=value: GAE bootstraps from the value head",
    )
    yield (
        s.returns != "vine" or s.baseline == "none",
        "returns=vine needs baseline=none: it compares with the sampled value of the state",
    )
    whole = s.reward_stream == "outcome" and s.multi_objective_aggregation == "sum_then_normalize"
    bounded = s.reward_clip_min is not None or s.reward_clip_max is not None
    yield (
        s.returns != "vine" or (whole and s.kl_placement != "reward" and not s.overlong_buffer and not bounded),
        "returns=vine needs reward_stream=outcome, multi_objective_aggregation=sum_then_normalize, overlong_buffer=0, "
        "no KL in the reward and no bounds of it: its values are sampled rewards of whole answers",
    )
    yield (
        not bounded or whole,
        "reward_clip_min and reward_clip_max need reward_stream=outcome and "
        "multi_objective_aggregation=sum_then_normalize: they bound the whole reward of an answer",
    )
    yield (
        None in (s.reward_clip_min, s.reward_clip_max) or s.reward_clip_min <= s.reward_clip_max,  # type: ignore[operator]
        "reward_clip_min is above reward_clip_max: no reward lies between them",
    )
    yield (
        s.pass_at_k == 1 or s.pass_at_k < s.num_generations,
        f"pass_at_k={s.pass_at_k} needs num_generations of {s.pass_at_k + 1} or more: else all answers of a group are "
        "paid alike",
    )
    yield (
        s.pass_at_k == 1 or (whole and s.returns != "vine" and s.baseline not in ("greedy", "value")),
        "pass_at_k above 1 needs reward_stream=outcome, multi_objective_aggregation=sum_then_normalize, a return other "
        "than vine and gae and a baseline other than greedy and value: it compares whole answers of a group",
    )
    yield (
        not s.retokenize_turns
        or (s.returns != "vine" and s.reward_stream == "outcome" and s.old_logprobs_of == "trainer"),
        "retokenize_turns needs old_logprobs_of=trainer, reward_stream=outcome and returns other than vine: what the "
        "sampler reported, and steps, are of the tokens that were sampled",
    )
    yield (
        s.multi_objective_aggregation == "sum_then_normalize" or s.reward_stream == "outcome",
        "multi_objective_aggregation=normalize_then_sum needs reward_stream=outcome: it normalises whole rewards, and "
        "their steps would count twice",
    )


def _baseline_rules(s: Settings) -> Rules:
    """What a return is compared with."""
    yield (
        s.baseline != "value" or s.returns != "broadcast",
        "baseline=value needs returns=gae or to_go: a value is the expectation from a token on",
    )
    for name, words in _SIBLINGS.items():
        yield (
            s.num_generations > 1 or getattr(s, name) not in words,
            f"{name}={getattr(s, name)} needs num_generations of 2 or more: one completion has no siblings",
        )


def _surrogate_rules(s: Settings) -> Rules:
    """What the surrogate needs."""
    yield (
        s.importance_sampling_level == "token" or s.surrogate_row.has_ratio,
        f"surrogate={s.surrogate} needs importance_sampling_level=token: it has no ratio",
    )
    yield (
        not s.surrogate_row.cap or (s.epsilon_high or 0) >= 1,
        f"surrogate={s.surrogate} needs epsilon_high of 1 or more: it is the largest weight a token may have",
    )
    trpo = s.surrogate_row.trust_region
    yield (
        trpo == (s.kl_placement == "constraint") and (not trpo or s.kl_anchor == "old"),
        "surrogate=trpo and kl_placement=constraint need each other, and kl_anchor=old: the limit is on the KL to the "
        "policy that sampled and replaces any other KL",
    )
    yield (
        not trpo or s.num_iterations * s.num_minibatches == 1,
        "surrogate=trpo needs num_iterations=1 and num_minibatches=1: an update is one step on the whole batch",
    )
    yield (
        not trpo or not s.gradient_checkpointing,
        "surrogate=trpo needs gradient_checkpointing=off: it differentiates its pass twice",
    )
    yield (
        not trpo or not s.router_aux_loss_coef,
        "surrogate=trpo needs router_aux_loss_coef=0: its line search measures Σ w·A alone",
    )
    yield (
        not trpo or (s.importance_sampling_level == "token" and not s.entropy_in_loss),
        "surrogate=trpo needs importance_sampling_level=token and no entropy bonus: its line search measures Σ w·A "
        "alone",
    )


def _correction_rules(s: Settings) -> Rules:
    """What corrects for a sampler that is not the policy."""
    yield (
        not s.surrogate_row.trust_region or s.importance_sampling_mode == "none",
        "surrogate=trpo needs importance_sampling_mode=none: its line search measures Σ w·A alone",
    )
    yield (
        not s.surrogate_row.takes_correction or s.correction_row.level in ("", "token"),
        f"surrogate={s.surrogate} needs an importance_sampling_mode of single tokens: its own weight is the answer's",
    )
    for name in ("importance_sampling_mode", "rollout_rs"):
        yield (
            getattr(s, name) == "none" or s.old_logprobs_of == "trainer",
            f"{name}={getattr(s, name)} needs old_logprobs_of=trainer: from the sampler's the ratio itself corrects",
        )
    low, high = s.importance_sampling_clip_min, s.importance_sampling_clip_max
    yield (
        low is None or high is None or low <= high,
        "importance_sampling_clip_min is above importance_sampling_clip_max: no factor would be within both",
    )
    yield (
        not s.rollout_rs.endswith("k1") or s.rollout_rs_threshold >= 1,
        f"rollout_rs={s.rollout_rs} needs a rollout_rs_threshold of 1 or more: its inverse is the lower bound",
    )


def _kl_rules(s: Settings) -> Rules:
    """What holds the policy near another one."""
    yield (
        s.kl_placement != "reward" or s.kl_anchor == "ref",
        "kl_placement=reward needs kl_anchor=ref: the KL to the policy that sampled is 0 when rewards are given",
    )
    yield (
        s.kl_ctrl == "fixed" or (s.beta > 0 and s.kl_placement in ("loss", "reward")),
        f"kl_ctrl={s.kl_ctrl} needs a KL term to adapt: beta above 0 and kl_placement=loss or reward",
    )
    yield (
        s.kl_ctrl != "ppo" or s.kl_anchor == "old",
        "kl_ctrl=ppo needs kl_anchor=old: it aims at the KL of one update",
    )
    yield (s.kl_ctrl != "ziegler" or s.kl_anchor == "ref", "kl_ctrl=ziegler needs kl_anchor=ref: it aims at the drift")
    yield (
        not s.sync_ref_model or s.reads_reference,
        "sync_ref_model needs something that reads the reference: beta above 0 and kl_placement=loss or reward",
    )


def _token_rules(s: Settings) -> Rules:
    """Which tokens count, and how much their entropy does."""
    yield (
        not s.clip_cov_ratio or (s.surrogate == "ppo" and s.importance_sampling_level == "token"),
        "clip_cov_ratio above 0 needs surrogate=ppo and importance_sampling_level=token: it draws from the tokens that "
        "PPO's clip has not",
    )
    yield (s.clip_cov_lb < s.clip_cov_ub, "clip_cov_lb is not below clip_cov_ub: no token lies between them")
    yield (
        s.kl_cov_ratio == 1
        or (s.kl_placement == "loss" and s.kl_anchor == "old" and s.beta > 0 and s.kl_estimator != "full"),
        "kl_cov_ratio below 1 needs kl_placement=loss, kl_anchor=old, beta above 0 and a kl_estimator other than full: "
        "it says which tokens that KL holds",
    )
    yield (
        s.entropy_coef_min <= s.entropy_coef_max,
        "entropy_coef_min is above entropy_coef_max: an adaptive bonus stays between them",
    )


def _teacher_rules(s: Settings) -> Rules:
    yield (
        not s.distils or s.teacher_model_kind != "live" or s.teacher_context != "none",
        "teacher_model_kind=live needs a teacher_context: else the teacher is the policy itself",
    )
    yield (
        not s.distils or s.teacher_context != "group" or s.num_generations > 1,
        "teacher_context=group needs num_generations of 2 or more: one completion has no siblings",
    )
    yield (
        not s.surrogate_row.trust_region or not s.distils_in_loss,
        "surrogate=trpo needs distillation_weight=0 or distillation_mode=advantage: its line search measures Σ w·A "
        "alone",
    )


def _value_rules(s: Settings) -> Rules:
    yield (
        s.temperature == 1.0,
        f"loss_type={s.loss_type} needs temperature=1: exploration_rate alone decides how it explores",
    )
    yield (
        s.multi_objective_aggregation == "sum_then_normalize" and s.reward_stream != "process_normalized",
        f"loss_type={s.loss_type} needs multi_objective_aggregation=sum_then_normalize and a reward_stream other than "
        "process_normalized: values are of rewards as they are",
    )


def _pair_rules(s: Settings) -> Rules:
    lead = PAIR_LOSSES.get(s.loss_type)
    yield (
        s.beta > 0 or lead is None or lead.beta_free,
        f"loss_type={s.loss_type} needs a beta above 0: β multiplies the gap that it trains",
    )
    yield (
        s.beta + s.cpo_alpha > 0 or lead is None or not (lead.beta_free and "alpha" in lead.reads),
        f"loss_type={s.loss_type} needs a beta or a cpo_alpha above 0: otherwise the loss is 0",
    )
    if lead is not None:
        yield from _mixture_rules(s, lead)
    yield (
        s.num_minibatches <= s.num_prompts,
        f"num_minibatches={s.num_minibatches} is more than the {s.num_prompts} pairs of an update",
    )
    yield (
        s.num_prompts >= 2 * s.num_minibatches or lead is None or "kto_baseline" not in lead.reads,
        f"loss_type={s.loss_type} needs 2 prompts or more in a minibatch: its baseline swaps answers among them",
    )


def _mixture_rules(s: Settings, lead: PairLoss) -> Rules:
    """What the losses of a pair that are added up need."""
    every = [PAIR_LOSSES[name] for name in mixture(s) if name in PAIR_LOSSES]
    known = {loss.name for loss in PAIR_LOSSES.values() if loss.mixes} | {IMITATED}
    strange = [name for name in s.loss_weights if name not in known]
    yield not strange, f"loss_weights takes {', '.join(sorted(known))}; got {', '.join(map(quote, strange))}"
    yield (
        not s.loss_weights or s.loss_type in s.loss_weights,
        f"loss_weights needs loss_type among its losses, and has no {s.loss_type}",
    )
    for loss in every:
        yield (
            s.label_smoothing > 0 or not loss.needs_smoothing,
            f"loss_type={loss.name} needs a label_smoothing above 0: it compares with log ε; the paper's is 0.001",
        )
    if not lead.mixes:
        return
    yield (
        s.f_divergence_type == "reverse_kl" or all(loss.of_difference for loss in every),
        f"f_divergence_type={s.f_divergence_type} needs losses of which only the gap counts: a score has a part that "
        "depends on the prompt and leaves the gap alone",
    )
    yield (
        not s.use_weighting or not any(loss.ranked for loss in every),
        f"use_weighting needs a loss of each pair by itself: loss_type={s.loss_type} sorts those of a minibatch",
    )
