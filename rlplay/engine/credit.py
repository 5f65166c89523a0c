"""Phase 3, credit: from one reward per completion to an advantage per token."""

from __future__ import annotations

import torch
from torch import Tensor

from rlplay.engine.axes import baselines, kl, returns, scales
from rlplay.engine.batch import Batch
from rlplay.engine.passes import forward, laid_out, score_tokens
from rlplay.engine.state import State
from rlplay.scenario.settings import Settings
from rlplay.trace.records import Credited


def credit(batch: Batch, state: State) -> Credited:
    """Give every token its advantage, `batch.advantages` [N, L]; also the reference's view of the same tokens."""
    lm, settings, mask = state.lm, state.settings, batch.mask
    assert batch.rewards is not None
    batch.ref_logprobs, ref_top = score_tokens(lm, lm.reference, batch.tokens(), batch.top_ids, batch.temperature)
    batch.values = predicted_values(batch, state) if settings.baseline == "value" else None
    stream = token_rewards(batch.rewards, batch.old_logprobs, batch.ref_logprobs, batch.lengths, mask, settings)
    batch.returns, baseline, batch.advantages = advantages(stream, batch.values, batch.group, mask, settings)
    mean, std = baselines.group_statistics(batch.rewards, batch.group, len(batch.prompts.ids))
    return Credited(
        update=batch.update,
        token_rewards=batch.flat(stream),
        returns=batch.flat(batch.returns),
        baseline=batch.flat(baseline),
        advantages=batch.flat(batch.advantages),
        values=None if batch.values is None else batch.flat(batch.values),
        ref_logprobs=batch.flat(batch.ref_logprobs),
        ref_top_logprobs=batch.flat(ref_top),
        group_mean=mean.cpu().numpy(),
        group_std=std.cpu().numpy(),
    )


def token_rewards(
    rewards: Tensor, old_logprobs: Tensor, ref_logprobs: Tensor, lengths: Tensor, mask: Tensor, settings: Settings
) -> Tensor:
    """The reward stream r_t [N, L]: the outcome on the last token, minus β·KL at every token if β is in the reward."""
    stream = torch.zeros_like(old_logprobs)
    stream[torch.arange(len(rewards), device=rewards.device), lengths - 1] = rewards
    if settings.kl_placement == "reward" and settings.beta:
        stream = stream - settings.beta * kl.estimate(settings.kl_estimator, old_logprobs, ref_logprobs)
    return stream * mask


def advantages(
    stream: Tensor, values: Tensor | None, group: Tensor, mask: Tensor, settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns, baseline and advantages, each [N, L], as the settings' axes combine them; 0 outside the mask."""
    outcomes = (stream * mask).sum(-1)
    baseline = _baseline(outcomes, values, group, settings)[..., : stream.shape[1]] * mask
    if settings.returns == "gae":
        assert values is not None
        raw = returns.gae(stream, values, mask, settings.gamma, settings.lam)
        result = raw + baseline
    else:
        to_go = settings.returns == "to_go"
        result = returns.to_go(stream, mask, settings.gamma) if to_go else returns.broadcast(stream, mask)
        raw = result - baseline
    return result, baseline, _scaled(raw, outcomes, group, mask, settings)


def _baseline(outcomes: Tensor, values: Tensor | None, group: Tensor, settings: Settings) -> Tensor:
    match settings.baseline:
        case "batch_mean":
            return baselines.batch_mean(outcomes)[:, None]
        case "group_mean":
            return baselines.group_mean(outcomes, group)[:, None]
        case "value":
            assert values is not None
            return values
        case _:
            return torch.zeros_like(outcomes)[:, None]


def _scaled(raw: Tensor, outcomes: Tensor, group: Tensor, mask: Tensor, settings: Settings) -> Tensor:
    match settings.scale_rewards:
        case "group":
            return raw / scales.group_std(outcomes, group)[:, None]
        case "batch":
            return raw / scales.batch_std(outcomes)[:, None]
        case "whiten":
            return scales.whiten(raw, mask)
        case _:
            return raw


@torch.no_grad()
def predicted_values(batch: Batch, state: State) -> Tensor:
    """The value head before every token under the current policy: [N, L]."""
    chunks = forward(state.lm, state.lm.policy, batch.tokens(), hidden=True)
    parts = [(c.rows, state.value_head(c.hidden.float()).squeeze(-1)) for c in chunks if c.hidden is not None]
    return laid_out(parts, batch.ids.shape[1])
