"""Phase 3, credit: from one reward per completion to an advantage per token."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlplay.algorithms import divergences, streams
from rlplay.algorithms.choice import call_choice
from rlplay.algorithms.credit import advantages
from rlplay.algorithms.own_choices import is_own
from rlplay.algorithms.scales import STD_EPSILON
from rlplay.algorithms.settings import Settings, row
from rlplay.engine.batch import Batch
from rlplay.engine.correct import correct, rule_of
from rlplay.engine.distillation.teacher import consult, mixed, recorded
from rlplay.engine.log_softmax import widened
from rlplay.engine.model import LanguageModel
from rlplay.engine.own_functions import check_finite
from rlplay.engine.passes import distributions, forward, laid_out, score_tokens
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.tensors import Tensors, group_statistics
from rlplay.engine.withheld import withhold, without_withheld
from rlplay.trace.records import Credited


def credit(batch: Batch, state: State) -> Credited:
    """Give every token its advantage, `batch.advantages` [N, L]; also the reference's view of the same tokens."""
    lm, settings = state.lm, state.settings
    withhold(batch, state)
    ref_top = None
    if settings.observe == "full" or settings.reads_reference:
        with spent_on("reference"):
            batch.ref_logprobs, ref_top = by_reference(lm, batch)
    batch.values = predicted_values(batch, state) if settings.baseline == "value" else None
    keep_exact(batch, state)
    correct(batch, settings)
    teacher_top = consult(batch, state)
    given = assigned(batch, settings, state.kl_coef)
    batch.put(returns=given.returns, advantages=given.advantages)
    return credited(batch, given, settings, ref_top, teacher_top)


def by_reference(lm: LanguageModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """The reference's log-probabilities of tokens [N, L] and candidates [N, L, K].

    If the policy still has the reference's weights, these are the policy's own.
    """
    if lm.is_reference() and not batch.from_sampler:
        return batch.old_logprobs, batch.top_logprobs
    return score_tokens(lm, lm.reference, batch.tokens(), batch.top_ids, batch.temperature)


def credited(
    batch: Batch, given: Assigned, settings: Settings, ref_top: Tensor | None = None, teacher_top: Tensor | None = None
) -> Credited:
    """The record of what credit assignment made of a batch; the last two are views of the candidates [N, L, K]."""
    assert batch.rewards is not None
    mean, std = group_statistics(batch.rewards, batch.on_host("group")[0], len(batch.prompts.ids))
    tokens = {
        "token_rewards": given.stream, "returns": given.returns, "baseline": given.baseline,
        "advantages": given.advantages, "values": given.values, "ref_logprobs": batch.ref_logprobs,
        "ref_top_logprobs": ref_top, "correction": batch.correction, **recorded(batch, teacher_top),
    }  # fmt: skip
    return Credited(
        update=batch.update, group_mean=mean.numpy(), group_std=std.numpy(), correction_rule=rule_of(batch, settings),
        **batch.flat_each(tokens),
    )  # fmt: skip


@dataclass
class Assigned:
    """What credit assignment made of a batch's rewards: all [N, L] on the CPU, 0 outside the mask; with the values it
    used."""

    values: Tensor | None
    stream: Tensor
    returns: Tensor
    baseline: Tensor
    advantages: Tensor


def assigned(batch: Batch, settings: Settings, beta: float) -> Assigned:
    """Stream, returns, baseline and advantages as the settings' axes combine them.

    All of it is computed in float64, and on the CPU, which has it on every machine; only what comes of it is rounded
    to the precision of the loss. Completions that no reward function scored are left out of every statistic; their
    tokens get 0 everywhere.
    """
    assert batch.rewards is not None
    known = (~batch.rewards.isnan()).nonzero().flatten()
    stream, (every,), mask = token_rewards(batch, settings, beta), batch.on_host("group"), batch.known_masks[0][known]
    used, group = "vine_values" if settings.returns == "vine" else "values", every[known]
    values = None if getattr(batch, used) is None else batch.on_host(used)[0]
    found = advantages(
        Tensors(stream),
        stream[known],
        group,
        mask,
        settings,
        values=None if values is None else values.double()[known],
        greedy=None if batch.greedy_rewards is None else clipped(batch.greedy_rewards[group], settings),
        step_ends=None if batch.vine_ends is None else batch.on_host("vine_ends")[0][known],
    )
    if is_own(settings.scale_rewards):
        check_finite("scale_rewards", settings, found[2], mask, {"returns": found[0], "baseline": found[1]})
    placed = [torch.zeros_like(stream).index_copy(0, known, part) for part in (stream[known], *found)]
    placed[-1] = mixed(placed[-1], batch, settings)
    rounded = [part.to(batch.old_logprobs.dtype) for part in placed]
    rounded[-1] = without_withheld(rounded[-1], batch)
    return Assigned(None if values is None else values.to(batch.old_logprobs.dtype), *rounded)


def token_rewards(batch: Batch, settings: Settings, beta: float) -> Tensor:
    """The reward stream r_t, float64 [N, L]: rewards where they arrive, minus β·KL at every token if β is in it."""
    mask, last, width = batch.known_masks[0], batch.known_last, batch.ids.shape[1]
    outcomes = _outcomes(batch, settings)
    stream = on_last(outcomes.nan_to_num(), last, width)
    if settings.reward_stream != "outcome":
        assert batch.step_scores is not None
        assert batch.step_ends is not None
        match settings.reward_stream:
            case "process":
                stream = stream + batch.step_scores
            case "process_normalized":
                # The end is a step only where a score arrives there: what nobody judged is no step of score 0.
                judged = (torch.arange(width) == last[:, None]) & ~outcomes.isnan()[:, None]
                every, ends = stream + batch.step_scores, batch.step_ends | judged
                stream = streams.normalized(Tensors(stream), every, ends, batch.on_host("group")[0], STD_EPSILON)
            case _:
                stream = stream + streams.shaped(Tensors(stream), batch.step_scores, mask, last, settings.gamma)
    if settings.overlong_buffer:
        limit = settings.max_completion_length
        penalty = streams.overlong(Tensors, batch.on_host("lengths")[0], limit, min(settings.overlong_buffer, limit))
        stream = stream + on_last(penalty.double(), last, width)
    if settings.kl_placement == "reward" and beta:
        stream = stream - beta * reference_kl(batch, settings).double()
    return stream.where(mask, 0.0)


def on_last(rewards: Tensor, last: Tensor, width: int) -> Tensor:
    """Rewards [N] on the `last` sampled token [N] of each completion: [N, width], 0 elsewhere."""
    stream = rewards.new_zeros(len(rewards), width)
    stream[torch.arange(len(rewards), device=rewards.device), last] = rewards
    return stream


def reference_kl(batch: Batch, settings: Settings) -> Tensor:
    """The KL of the policy that sampled to the reference, by the settings' estimator: [N, L] on the CPU."""
    if settings.kl_estimator == "full":
        return batch.on_host("exact_kl")[0]
    ref_logprobs, old_logprobs = batch.on_host("ref_logprobs", "old_logprobs")
    known = {"log_ratio": ref_logprobs - old_logprobs}
    found: Tensor = call_choice(row(settings, "kl_estimator").compute, Tensors, known, settings)
    return found


def _outcomes(batch: Batch, settings: Settings) -> Tensor:
    """What arrives on the last token [N], NaN where nothing does: the reward, or its part that no step earned."""
    assert batch.rewards is not None
    if settings.multi_objective_aggregation == "normalize_then_sum":
        return _normalized_parts(batch)
    if settings.reward_stream == "outcome":
        return best_of(batch, clipped(batch.rewards, settings), settings)
    assert batch.outcomes is not None
    return batch.outcomes


def clipped(rewards: Tensor, settings: Settings) -> Tensor:
    """Rewards within the settings' bounds, before any KL is subtracted (TRL's `reward_clip_range`)."""
    return Tensors.clip(rewards, settings.reward_clip_min, settings.reward_clip_max)


def best_of(batch: Batch, rewards: Tensor, settings: Settings) -> Tensor:
    """Rewards [N], each of the best of pass_at_k answers that include this one; unknown ones are none of them."""
    if settings.pass_at_k == 1:
        return rewards
    known, found = ~rewards.isnan(), rewards.clone()
    (group,) = batch.on_host("group")
    paid = streams.best_of(rewards[known].numpy(), group[known].numpy(), settings.pass_at_k)
    found[known] = torch.from_numpy(paid)
    return found


def _normalized_parts(batch: Batch) -> Tensor:
    """Σ_k weight_k · (r_k − group mean) / (group std + ε) over the rewards that answered (GDPO, arXiv:2601.05242)."""
    assert batch.rewards is not None
    total, (group,) = torch.zeros_like(batch.rewards), batch.on_host("group")
    for name, part in batch.parts.items():
        values = torch.from_numpy(part).double()
        mean, std = group_statistics(values, group, len(batch.prompts.ids))
        scaled = (values - mean[group]) / (std[group] + STD_EPSILON)
        total = total + batch.weights[name] * scaled.nan_to_num()
    return torch.where(batch.rewards.isnan(), batch.rewards, total)


def keep_exact(batch: Batch, state: State) -> None:
    """Keep the KL over the whole vocabulary, and the distributions it is taken to where the loss needs them."""
    settings, lm = state.settings, state.lm
    if settings.kl_estimator != "full" or batch.ref_logprobs is None:
        return
    old = distributions(lm, lm.policy, batch.tokens(), batch.temperature)
    with spent_on("reference"):
        reference = old if lm.is_reference() else distributions(lm, lm.reference, batch.tokens(), batch.temperature)
    batch.exact_kl = divergences.full(Tensors, old, reference)
    if settings.kl_placement == "loss" and state.kl_coef:
        batch.anchor = old if settings.kl_anchor == "old" else reference


@torch.no_grad()
def predicted_values(batch: Batch, state: State) -> Tensor:
    """The value head before every token under the current policy: [N, L]."""
    parts = []
    for chunk in forward(state.lm, state.lm.policy, batch.tokens(), hidden=True):
        assert chunk.hidden is not None
        parts.append((chunk.rows, chunk.spread(state.value_head(widened(chunk.hidden)).squeeze(-1))))
    return laid_out(parts, batch.ids.shape[1])
