"""Combines settings: applies presets, makes several changes at once, and checks that the axes fit each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.named import preset
from rlplay.algorithms.pair_losses import PAIR_LOSSES, PairLoss, mixture
from rlplay.algorithms.setting_values import check
from rlplay.algorithms.settings import Settings
from rlplay.algorithms.surrogates import OWN_SURROGATE, SURROGATES
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import quote


def apply(settings: Settings, name: str, value: Any) -> Settings:
    """`settings` with one setting changed; `algorithm` changes all the axes of its preset.

    Setting or leaving TRPO's surrogate also sets or removes its constraint, since neither can be set first.

    Raises ValueError, one line, if the name or value is not allowed.
    """
    value = check(name, value)
    if name == "surrogate" and SURROGATES.get(value, OWN_SURROGATE).trust_region:
        return msgspec.structs.replace(settings, surrogate=value, kl_placement="constraint", kl_anchor="old")
    if name == "surrogate" and settings.kl_placement == "constraint":
        return msgspec.structs.replace(settings, surrogate=value, kl_placement="none")
    if name != "algorithm":
        return msgspec.structs.replace(settings, **{name: value})
    axes = {setting: check(setting, word) for setting, word in preset(value).axes.items()}
    return msgspec.structs.replace(settings, algorithm=value, **axes)


def resolve(chosen: SomeSettings) -> Settings:
    """The settings of a scenario's mapping: the defaults, then the algorithm's axes, then the `chosen` values.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    return apply_all(Settings(), {"algorithm": "grpo", **chosen})


def apply_all(settings: Settings, changes: SomeSettings) -> Settings:
    """`settings` with all `changes` at once, those that change other settings first; only the result has to fit.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    for name, value in _leaders_first(changes):
        settings = apply(settings, name, value)
    return validated(settings)


def in_order(settings: Settings, changes: SomeSettings) -> list[tuple[str, Any]]:
    """`changes` one by one, in an order in which every step is allowed, with a detour if necessary.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    goal = apply_all(settings, changes)
    left = {name: getattr(goal, name) for name, _ in _leaders_first(changes)}
    steps: list[tuple[str, Any]] = []
    while left:
        fitting = (item for item in left.items() if _fits(settings, *item))
        # GAE and a value baseline need each other; only via to_go can one be set before the other.
        detour = ("returns", "to_go")
        name, value = next(fitting, next(iter(left.items())) if detour in steps else detour)
        settings = apply(settings, name, value)
        steps.append((name, value))
        if getattr(goal, name) == value:
            left.pop(name, None)
        else:
            left[name] = getattr(goal, name)
    return steps


def _leaders_first(changes: SomeSettings) -> list[tuple[str, Any]]:
    """The algorithm, then the surrogate, then the rest: a setting that changes others must not undo their changes."""
    return sorted(changes.items(), key=lambda change: (change[0] != "algorithm", change[0] != "surrogate"))


def _fits(settings: Settings, name: str, value: Any) -> bool:
    try:
        validated(apply(settings, name, value))
    except ValueError:
        return False
    return True


def validated(settings: Settings) -> Settings:
    """`settings` if its axes fit together; else raises ValueError with the reason."""
    if settings.loss_type in VALUE_LOSSES:
        rules = _value_rules(settings)
    else:
        rules = _rules(settings) if settings.loss_type == "policy_gradient" else _pair_rules(settings)
    for fits, reason in rules:
        if not fits:
            raise ValueError(reason)
    return settings


_SIBLINGS = {
    "baseline": tuple(name for name, baseline in BASELINES.items() if baseline.siblings),
    "scale_rewards": ("group", "mean", "pass_rate"),
    "multi_objective_aggregation": ("normalize_then_sum",),
    "reward_stream": ("process_normalized",),
    "dynamic_sampling": (True,),
}
"""Settings that compare the completions of one prompt with each other."""


def _rules(s: Settings) -> Iterator[tuple[bool, str]]:
    """The conditions that must hold, each with its reason."""
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
    yield (
        s.baseline != "value" or s.returns != "broadcast",
        "baseline=value needs returns=gae or to_go: a value is the expectation from a token on",
    )
    for name, words in _SIBLINGS.items():
        yield (
            s.num_generations > 1 or getattr(s, name) not in words,
            f"{name}={getattr(s, name)} needs num_generations of 2 or more: one completion has no siblings",
        )
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
        not trpo or (s.importance_sampling_level == "token" and not s.entropy_in_loss),
        "surrogate=trpo needs importance_sampling_level=token and no entropy bonus: its line search measures Σ w·A "
        "alone",
    )
    yield (
        not trpo or s.importance_sampling_mode == "none",
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
    yield from _teacher_rules(s)
    completions = s.num_prompts * s.num_generations
    yield (
        s.num_minibatches <= completions,
        f"num_minibatches={s.num_minibatches} is more than the {completions} completions of an update",
    )


def _teacher_rules(s: Settings) -> Iterator[tuple[bool, str]]:
    yield (
        not s.distils or s.teacher_model_kind != "live" or s.teacher_context != "none",
        "teacher_model_kind=live needs a teacher_context: else the teacher is the policy itself",
    )
    yield (
        not s.distils or s.teacher_context != "group" or s.num_generations > 1,
        "teacher_context=group needs num_generations of 2 or more: one completion has no siblings",
    )
    yield (
        not s.surrogate_row.trust_region or not s.router_aux_loss_coef,
        "surrogate=trpo needs router_aux_loss_coef=0: its line search measures Σ w·A alone",
    )
    yield (
        not s.surrogate_row.trust_region or not s.distils_in_loss,
        "surrogate=trpo needs distillation_weight=0 or distillation_mode=advantage: its line search measures Σ w·A "
        "alone",
    )


def _value_rules(s: Settings) -> Iterator[tuple[bool, str]]:
    yield (
        s.temperature == 1.0,
        f"loss_type={s.loss_type} needs temperature=1: exploration_rate alone decides how it explores",
    )
    yield (
        s.multi_objective_aggregation == "sum_then_normalize" and s.reward_stream != "process_normalized",
        f"loss_type={s.loss_type} needs multi_objective_aggregation=sum_then_normalize and a reward_stream other than "
        "process_normalized: values are of rewards as they are",
    )


def _pair_rules(s: Settings) -> Iterator[tuple[bool, str]]:
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


def _mixture_rules(s: Settings, lead: PairLoss) -> Iterator[tuple[bool, str]]:
    """What the losses of a pair that are added up need."""
    every = [PAIR_LOSSES[name] for name in mixture(s) if name in PAIR_LOSSES]
    known = {loss.name for loss in PAIR_LOSSES.values() if loss.mixes} | {"sft"}
    strange = [name for name in s.loss_weights if name not in known]
    yield not strange, f"loss_weights takes {', '.join(sorted(known))}; got {', '.join(map(quote, strange))}"
    yield (
        not s.loss_weights or s.loss_type in s.loss_weights,
        f"loss_weights needs loss_type among its losses, and has no {s.loss_type}",
    )
    yield (
        s.label_smoothing > 0 or all(loss.name != "exo_pair" for loss in every),
        "loss_type=exo_pair needs a label_smoothing above 0: it compares with log ε; the paper's is 0.001",
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
