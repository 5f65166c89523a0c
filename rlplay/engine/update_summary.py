"""Phase 5, after: the same tokens under the new policy, and the update's numbers under TRL's names."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms import divergences
from rlplay.engine.batch import Batch
from rlplay.engine.correct import correction_metrics
from rlplay.engine.credit_phase import reference_kl
from rlplay.engine.distillation.teacher import teacher_metrics
from rlplay.engine.mismatch import mismatch_figures
from rlplay.engine.model import LanguageModel
from rlplay.engine.passes import score_with_favourites
from rlplay.engine.state import State
from rlplay.engine.stopwatch import spent_on
from rlplay.engine.survey import survey
from rlplay.engine.tensors import Tensors, group_statistics
from rlplay.engine.transfer import to_host
from rlplay.trace.over_steps import over_steps
from rlplay.trace.records import Array, Finished, Scored
from rlplay.worlds.figures import figures


def after(batch: Batch, scored: Scored, state: State) -> Finished:
    """Sum the update up, and look at its completions again."""
    metrics = reward_metrics(scored, batch, "") | length_metrics(batch, "") | _policy_metrics(batch, state)
    return finished(batch, metrics, state)


def finished(batch: Batch, metrics: dict[str, float], state: State) -> Finished:
    """Re-evaluate completions under the new policy; counts the update as finished. The driver adds the timings.

    All of them or, where nobody looks and no controller needs it, none.
    """
    settings, lm, mask = state.settings, state.lm, batch.known_masks[0]
    old, top_ids, top_logprobs, ids = batch.on_host("old_logprobs", "top_ids", "top_logprobs", "ids")
    rows, seen_again = 0, (old[:0], top_logprobs[:0], ids[:0], old[:0])
    if settings.observe == "full" or settings.kl_ctrl == "ppo":
        rows = len(batch.group)
        with spent_on("look"):
            seen_again = _look_again(batch, lm)
    logprobs, top_logprobs, likeliest, best = seen_again
    if settings.loss_type == "policy_gradient":  # else the old policy did not sample these tokens: no estimate
        if rows:
            metrics["kl_old"] = divergences.k3(Tensors, (logprobs - old)[mask]).mean().item()
        _adapt(batch, metrics, state)
    seen_rows = torch.arange(rows)
    favourites = batch.flat(likeliest, seen_rows).astype(np.int32)
    newcomers = np.setdiff1d(favourites, batch.flat(top_ids)).tolist()
    state.num_tokens += int(mask.sum()) + batch.dropped_tokens
    metrics |= batch.retokenized
    if state.settings.dynamic_sampling:
        metrics["dynamic_sampling/dropped_groups"] = float(batch.dropped_groups)
    metrics["num_tokens"] = float(state.num_tokens)
    state.update = batch.update
    seen = survey(state)
    if state.world is not None and seen is not None:
        metrics |= figures(state.world, seen, state.settings.loss_type, state.settings.gamma)
    return Finished(
        update=batch.update,
        rows=np.arange(rows, dtype=np.int32),
        logprobs=batch.flat(logprobs, seen_rows),
        top_logprobs=batch.flat(top_logprobs, seen_rows),
        favourite_ids=favourites,
        favourite_logprobs=batch.flat(best, seen_rows),
        pieces={i: lm.piece(i) for i in newcomers},
        metrics=metrics,
        timings={},
        seconds=0.0,
        survey=seen,
    )


def _look_again(batch: Batch, lm: LanguageModel) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What the policy makes of a batch now, as `score_with_favourites`, on the CPU; exactly as before if no step has
    moved it."""
    if batch.passes is not None and not batch.passes.moved and batch.sampling_logprobs is None:
        old, top_ids, top_logprobs = batch.on_host("old_logprobs", "top_ids", "top_logprobs")
        return old, top_logprobs, top_ids[..., 0], top_logprobs[..., 0]
    found = to_host(score_with_favourites(lm, lm.policy, batch.tokens(), batch.top_ids, batch.temperature))
    logprobs, top_logprobs, likeliest, best = found
    return logprobs, top_logprobs, likeliest, best


def of_steps(batch: Batch) -> dict[str, float]:
    """The optimizer steps' numbers, as `over_steps` makes one of each."""
    names = dict.fromkeys(name for step in batch.step_metrics for name in step)  # in the same order in every process
    return {name: over_steps(name, [step[name] for step in batch.step_metrics]) for name in names}


def reward_metrics(scored: Scored, batch: Batch, prefix: str) -> dict[str, float]:
    """Rewards and gold scores of a batch; `prefix` is "eval_" for held-out prompts."""
    rewards = scored.rewards
    mean, std = _mean_and_std(rewards)
    metrics = {f"{prefix}reward": mean}
    for name, values in scored.parts.items():
        if not np.isnan(values).all():
            metrics[f"{prefix}rewards/{name}/mean"], metrics[f"{prefix}rewards/{name}/std"] = _mean_and_std(values)
    for name, values in scored.gold.items():
        if not np.isnan(values).all():
            metrics[f"{prefix}gold/{name}/mean"] = float(np.nanmean(values))
    metrics |= {f"{prefix}{name}": value for name, value in scored.logged.items()}
    if not prefix:
        metrics["reward_std"] = std
        if len(known := rewards[~np.isnan(rewards)]):
            metrics["reward_p10"], metrics["reward_p90"] = np.quantile(known, (0.1, 0.9)).tolist()
        names, members = np.unique(batch.on_host("group")[0].numpy(), return_inverse=True)
        groups = [rewards[members == i] for i in range(len(names))]
        if flat := [len(set(each[~np.isnan(each)])) < 2 for each in groups if len(each) > 1]:
            metrics["frac_reward_zero_std"] = float(np.mean(flat))
    return metrics


def _mean_and_std(scores: Array) -> tuple[float, float]:
    """Of the known ones [N], with ddof = 1; as exact where they are equal as the baselines are."""
    values = torch.from_numpy(scores)
    mean, std = group_statistics(values, torch.zeros(len(values), dtype=torch.long), 1)
    return mean.item(), std.item()


def length_metrics(batch: Batch, prefix: str) -> dict[str, float]:
    """Completion lengths, the end token included, and the share that was cut."""
    lengths, (truncated,) = batch.known_masks[0].sum(-1).float(), batch.on_host("truncated")
    return {
        f"{prefix}completions/mean_length": lengths.mean().item(),
        f"{prefix}completions/min_length": lengths.min().item(),
        f"{prefix}completions/max_length": lengths.max().item(),
        f"{prefix}completions/clipped_ratio": truncated.float().mean().item(),
    }


def _distinct(batch: Batch) -> float:
    """How many different answers a prompt got, token for token, mean over prompts."""
    rows = zip(*(values.tolist() for values in batch.on_host("group", "ids", "lengths")), strict=True)
    different = {(group, *ids[:length]) for group, ids, length in rows}
    return len(different) / len({group for group, *_ in different})


def _policy_metrics(batch: Batch, state: State) -> dict[str, float]:
    mask, (entropy,) = batch.known_masks[0], batch.on_host("entropy")
    metrics = of_steps(batch) | mismatch_figures(batch)
    metrics["completions/distinct"] = _distinct(batch)
    metrics["entropy"] = entropy[mask].mean().item()
    metrics |= teacher_metrics(batch)
    if "kl" not in metrics and batch.ref_logprobs is not None:
        metrics["kl"] = reference_kl(batch, state.settings)[mask].mean().item()
    metrics |= correction_metrics(batch, state.settings)
    if batch.vine_tokens:
        metrics["vine_tokens"] = float(batch.vine_tokens)
    if batch.values is not None and batch.returns is not None:
        returns, values = batch.on_host("returns", "values")
        error, target = (returns - values)[mask], returns[mask]
        metrics["explained_variance"] = (1 - error.var() / target.var().clamp(min=1e-8)).item()
    return metrics


def _adapt(batch: Batch, metrics: dict[str, float], state: State) -> None:
    """Let the controller, if there is one, choose the next update's β."""
    settings, beta = state.settings, state.kl_coef
    if settings.kl_ctrl == "ziegler":
        kl = reference_kl(batch, settings)[batch.known_masks[0]].mean().item()
        beta = divergences.ziegler(beta, kl, settings.target_kl, len(batch.group), settings.kl_horizon)
    elif settings.kl_ctrl == "ppo":
        beta = divergences.halve_or_double(beta, metrics["kl_old"], settings.target_kl)
    state.adapted = beta, settings.beta
