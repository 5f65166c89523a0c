"""The loss of some completions, as the settings' axes combine it, and what it says of every token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rlplay.algorithms import distillation, divergences, masks
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.settings import Settings, row
from rlplay.engine.own_functions import check_finite
from rlplay.engine.tensors import Tensors


@dataclass
class Inputs:
    """Inputs of the loss for R completions: the first four [R, L]; `ref_logprobs` and those after `advantages` are
    None unless the settings need them.

    Only `logprobs`, `distribution` and `entropy` carry gradients: log-probability of each token, whole next-token
    distribution [R, L, V] and its entropy under the policy that is trained. `anchor` [R, L, V] belongs to the exact KL.
    `at_anchor` says that the policy that the KL is taken to has the same weights, so that this KL is 0.
    `sampling_logprobs` [R, L] are the sampler's, `log_correction` [R, L] the logarithm of the correction where the
    surrogate takes it in. `teacher` [R, L, V] belongs to a divergence over whole distributions, `teacher_logprobs` to
    the sampled tokens; `taught` bool [R, 1] says which answers have a teacher.
    """

    logprobs: Tensor
    old_logprobs: Tensor
    ref_logprobs: Tensor | None
    advantages: Tensor
    distribution: Tensor | None = None
    anchor: Tensor | None = None
    entropy: Tensor | None = None
    at_anchor: bool = False
    sampling_logprobs: Tensor | None = None
    log_correction: Tensor | None = None
    teacher: Tensor | None = None
    teacher_logprobs: Tensor | None = None
    taught: Tensor | None = None


@dataclass
class Terms:
    """What the loss consists of. `loss`, `policy_loss` and `kl_loss` are scalars, the other tensors [R, L].

    `kl` is the KL of each token before it is multiplied by β; None if the loss has no KL term. `distillation` is the
    teacher's term of each token before it is multiplied by λ, 0 where nobody teaches; None if the loss has none.

    `ratio` is the importance weight at the level of the settings; `clip_state` as `surrogates.ppo_clip_state`; `kept`
    is the weight of each token's surrogate, 0 where it is left out.
    """

    loss: Tensor
    policy_loss: Tensor
    kl_loss: Tensor | None
    kept: Tensor
    ratio: Tensor
    clip_state: Tensor
    kl: Tensor | None
    distillation: Tensor | None = None


def objective(
    inputs: Inputs, weights: Tensor, settings: Settings, beta: float,
    keep: Tensor | None = None, bonus: Tensor | None = None, entropy_coef: float = 0.0, held: Tensor | None = None,
) -> Terms:  # fmt: skip
    """loss = Σ_t weight_t·((1 − λ)·keep_t·surrogate_t + β·kl_t + λ·distillation_t) − entropy_coef·Σ_t bonus_t·H_t.

    λ, `distillation_weight`, is 0 where the teacher has no term.

    `weights`, `keep` and `bonus` are [R, L], `weights` 0 on padding; without `keep` every token's surrogate counts,
    without `held` its KL.
    With `use_bias_correction_kl` the KL to the reference is multiplied by the ratio, so that its gradient is unbiased
    when the completions were sampled by an older policy (TRL's default).
    """
    inside = weights > 0
    log_ratio = torch.where(inside, inputs.logprobs - inputs.old_logprobs, 0.0)
    known = quantities(inputs, log_ratio, inside, settings)
    found = call_choice(row(settings, "surrogate").compute, known.xp, known.by_name, settings)
    surrogate = torch.where(inside, found, 0.0)
    if is_own(settings.surrogate):
        check_finite("surrogate", settings, surrogate, inside, known.by_name)
    kept = weights if keep is None else weights * keep
    if settings.off_policy_mask_threshold is not None:
        moved = log_ratio if inputs.sampling_logprobs is None else inputs.logprobs - inputs.sampling_logprobs
        moved = torch.where(inside & ~moved.isnan(), moved, log_ratio)
        kept = kept * masks.on_policy(Tensors, moved, inputs.advantages, inside, settings.off_policy_mask_threshold)
    policy_loss = (kept * surrogate).sum()
    loss, token_kl, kl_loss, taught = policy_loss, None, None, None
    if settings.distils_in_loss:
        taught = taught_term(inputs, log_ratio, inside, settings)
        share = settings.distillation_weight
        loss = share * (weights * taught).sum() + (0.0 if settings.only_distils else (1 - share) * policy_loss)
    if settings.kl_placement == "loss" and beta:
        token_kl = torch.where(inside, _divergence(inputs, known.by_name["ratio"], inside, settings), 0.0)
        token_kl = token_kl if held is None else torch.where(held, token_kl, 0.0)
        kl_loss = beta * (weights * token_kl).sum()
        loss = loss + kl_loss
    if entropy_coef and inputs.entropy is not None and bonus is not None:
        loss = loss - entropy_coef * (bonus * inputs.entropy).sum()
    state = _clip_state(known, surrogate, inputs.logprobs, inside, settings)
    return Terms(loss, policy_loss, kl_loss, kept, known.by_name["ratio"], state, token_kl, taught)


def taught_term(inputs: Inputs, log_ratio: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    """The teacher's term of each token [R, L], 0 where nobody teaches."""
    there = inside if inputs.taught is None else inside & inputs.taught
    if inputs.teacher is None and inputs.teacher_logprobs is None:  # the teacher is the policy as it is
        return inputs.logprobs * 0
    known: dict[str, Any] = {"logprobs": inputs.logprobs}
    if settings.mode_row.whole:
        assert inputs.distribution is not None
        assert inputs.teacher is not None
        known["policy"], known["teacher"] = inputs.distribution, inputs.teacher
        if settings.mode_row.few:
            known |= _few(inputs.distribution, inputs.teacher, settings)
    else:
        assert inputs.teacher_logprobs is not None
        known["teacher_logprobs"] = torch.where(there, inputs.teacher_logprobs, 0.0)
    xp = Tensors(inputs.logprobs)
    found: Tensor = call_choice(settings.mode_row.compute, xp, known, settings)
    if settings.distillation_is_clip is not None:
        found = distillation.bounded(xp, found, log_ratio, settings.distillation_is_clip)
    return torch.where(there, found, 0.0)


def _few(policy: Tensor, teacher: Tensor, settings: Settings) -> dict[str, Tensor]:
    """Both distributions over the policy's likeliest tokens: with one entry more for all others, or scaled."""
    ids = policy.detach().topk(min(settings.distillation_topk, policy.shape[-1]), dim=-1).indices
    both = {"policy": policy.gather(-1, ids), "teacher": teacher.gather(-1, ids)}
    sums = {name: each.logsumexp(-1, keepdim=True) for name, each in both.items()}
    if not settings.distillation_add_tail:
        return {name: each - sums[name] for name, each in both.items()}
    rest = {name: torch.log(-torch.expm1(each.clamp(max=-1e-7))) for name, each in sums.items()}
    return {name: torch.cat([each, rest[name]], dim=-1) for name, each in both.items()}


@dataclass
class Arguments:
    """What a choice may take of some completions, by name, and the array namespace that it is computed over."""

    xp: Tensors
    by_name: dict[str, Any]


def quantities(inputs: Inputs, log_ratio: Tensor, inside: Tensor, settings: Settings) -> Arguments:
    """The arguments of a surrogate: arrays [R, L], the ratio at the settings' level, and the clip range."""
    low, high = settings.clip_range
    xp = Tensors(inputs.logprobs)
    known: dict[str, Any] = {
        "advantages": inputs.advantages, "logprobs": inputs.logprobs, "old_logprobs": inputs.old_logprobs,
        "ref_logprobs": inputs.ref_logprobs, "log_ratio": log_ratio, "mask": inside, "epsilon": low,
        "epsilon_high": high, "log_correction": 0.0 if inputs.log_correction is None else inputs.log_correction,
    }  # fmt: skip
    weight = call_choice(row(settings, "importance_sampling_level").compute, xp, known, settings)
    known["ratio"] = torch.where(inside, weight.expand_as(log_ratio), 0.0).exp()
    if is_own(settings.surrogate):  # its gradient on padding may be NaN
        for name in ("logprobs", "old_logprobs", "ref_logprobs"):
            known[name] = torch.where(inside, known[name], 0.0)
    return Arguments(xp, known)


def _clip_state(known: Arguments, surrogate: Tensor, logprobs: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    """Where the surrogate's gradient is exactly 0: at a bound or, for a user's function, where A ≠ 0. int8 [R, L]."""
    chosen, level = row(settings, "surrogate"), row(settings, "importance_sampling_level")
    if is_own(settings.surrogate):
        return _flat(surrogate, logprobs, known.by_name) * inside
    compute = chosen.gradient_zero or level.gradient_zero
    if compute is None:
        return torch.zeros_like(logprobs, dtype=torch.int8)
    values = {name: x.detach() if isinstance(x, Tensor) else x for name, x in known.by_name.items()}
    found: Tensor = call_choice(compute, known.xp, values, settings)
    return found.to(torch.int8) * inside


def _flat(surrogate: Tensor, logprobs: Tensor, known: dict[str, Any]) -> Tensor:
    """Where a surrogate has gradient 0 although the token has an advantage: +1 for a ratio of 1 or more, −1 below."""
    if not surrogate.requires_grad:
        return torch.zeros_like(logprobs, dtype=torch.int8)
    (gradient,) = torch.autograd.grad(surrogate.sum(), logprobs, retain_graph=True)
    side = torch.where(known["ratio"] >= 1, 1, -1)
    return torch.where((gradient == 0) & (known["advantages"] != 0), side, 0).to(torch.int8)


def _divergence(inputs: Inputs, ratio: Tensor, inside: Tensor, settings: Settings) -> Tensor:
    """KL(policy ‖ reference), or KL(old ‖ policy) where the anchor is the policy that sampled."""
    to_old = settings.kl_anchor == "old"
    if settings.kl_estimator == "full":
        if inputs.at_anchor:
            return inputs.logprobs * 0
        assert inputs.distribution is not None
        assert inputs.anchor is not None
        pair = (inputs.anchor, inputs.distribution) if to_old else (inputs.distribution, inputs.anchor)
        exact: Tensor = divergences.full(Tensors, *pair)
        return exact
    other = inputs.old_logprobs if to_old else inputs.ref_logprobs
    assert other is not None
    anchor = torch.where(inside & (not inputs.at_anchor), other, inputs.logprobs.detach())
    log_ratio = inputs.logprobs - anchor if to_old else anchor - inputs.logprobs
    estimated: Tensor = call_choice(
        row(settings, "kl_estimator").compute, Tensors(ratio), {"log_ratio": log_ratio}, settings
    )
    return estimated * ratio if settings.use_bias_correction_kl and not to_old else estimated


def value_loss(values: Tensor, old_values: Tensor, returns: Tensor, mask: Tensor, clip: float, count: int) -> Tensor:
    """½ Σ max((v − R)², (clip(v, v_old ± clip) − R)²) / count over sampled tokens (PPO's clipped value loss)."""
    near = old_values + (values - old_values).clamp(-clip, clip)
    worst = torch.max((values - returns) ** 2, (near - returns) ** 2)
    return 0.5 * (worst * mask).sum() / count
