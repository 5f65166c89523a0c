"""Learning a reward model from which of two answers was preferred: one update, phase by phase."""

from __future__ import annotations

from collections.abc import Generator

import torch
from torch import Tensor

from rlplay.algorithms.pair_functions import bradley_terry
from rlplay.engine import ranks
from rlplay.engine.batch import Batch
from rlplay.engine.optimize import TrainedMinibatch, brought
from rlplay.engine.passes import backpropagated, rows_at_once
from rlplay.engine.preference_pairs import PairRows, Unlabelled, draw_pairs, label, label_metrics, optimize_pairs
from rlplay.engine.reward_model import RewardModel, prefix_scores, reward_model_of
from rlplay.engine.sample import Sampling
from rlplay.engine.state import RunPlan, State
from rlplay.engine.tensors import Tensors, group_statistics
from rlplay.engine.transfer import to_device
from rlplay.engine.update_summary import finished, of_steps
from rlplay.trace.records import AnyRecord, Credited, Finished, Scored


def learn_reward_model(state: State, plan: RunPlan) -> Generator[Sampling | Unlabelled | AnyRecord, None, Finished]:
    """One update of the reward model, phase by phase; the policy stays as it is. Raises Halt as `optimize` does.

    What the records say of policy and loss is therefore exact: ratios of 1, and a derivative of 0 for every token.
    """
    batch, same = yield from draw_pairs(state, plan)
    scored, pairs = yield from label(batch, same, state, plan)
    model = reward_model_of(state)
    yield scored
    yield _credit(batch, scored, model, state)
    yield from optimize_pairs(batch, pairs, lambda part: _gradients(batch, pairs, part, model, state), state, plan.seed)
    return finished(batch, of_steps(batch) | label_metrics(scored), state)


@torch.no_grad()
def _credit(batch: Batch, scored: Scored, model: RewardModel, state: State) -> Credited:
    mean, std = group_statistics(torch.from_numpy(scored.rewards), batch.on_host("group")[0], len(batch.prompts.ids))
    scores = prefix_scores(state.lm, model, batch.tokens())
    tokens = batch.flat_each({"advantages": torch.zeros(batch.ids.shape), "values": scores})
    return Credited(update=batch.update, group_mean=mean.numpy(), group_std=std.numpy(), **tokens)


def _gradients(batch: Batch, pairs: PairRows, part: Tensor, model: RewardModel, state: State) -> TrainedMinibatch:
    """Fill the reward model's gradients with those of the loss of the pairs `part`, int64 on the CPU."""
    rows, count = pairs.rows(part), len(part)
    last, margins = to_device([batch.known_last[rows, None], _margins(batch, pairs.chosen[part])], batch.ids.device)

    def derivative(scores: Tensor) -> tuple[Tensor, Tensor]:
        outcome = scores.gather(1, last).squeeze(1)
        chosen, rejected = outcome[:count], outcome[count:]
        center = state.settings.center_rewards_coefficient
        loss = bradley_terry(Tensors, chosen - rejected, margins, chosen, rejected, center).mean()
        return torch.autograd.grad(loss, scores)[0], loss.detach()

    lm, size = state.lm, rows_at_once(state.lm, batch.ids.shape[1])
    scores, _, loss = backpropagated(
        rows, size, lambda piece: prefix_scores(lm, model, batch.tokens(piece)), derivative
    )
    ranks.add_gradients(state.parameters.values())
    outcome = scores.gather(1, last).squeeze(1)
    won, lost = outcome[:count], outcome[count:]
    logprobs = batch.on_host("old_logprobs")[0][rows]
    ratio, gradient = torch.ones_like(logprobs), torch.zeros_like(logprobs)
    metrics = {"loss": loss, **_metrics(won, lost)}
    return brought([TrainedMinibatch(rows, logprobs, ratio, gradient, metrics, values=scores, margins=won - lost)])[0]


def _margins(batch: Batch, chosen: Tensor) -> Tensor:
    """The gap that each pair's scores should have: the column `margin` of the user's file, as TRL reads it, else 0."""
    columns = [batch.prompts.examples[g].columns for g in batch.on_host("group")[0][chosen].tolist()]
    return torch.tensor([float(c.get("margin") or 0) for c in columns])


def _metrics(won: Tensor, lost: Tensor) -> dict[str, Tensor]:
    """TRL's names for the scores of the chosen and the rejected completions, [P] each; a tie counts as half correct."""
    both = torch.cat([won, lost])
    return {
        "min_reward": both.min(),
        "mean_reward": both.mean(),
        "max_reward": both.max(),
        "accuracy": ((won > lost).float() + 0.5 * (won == lost)).mean(),
        "margin": (won - lost).mean(),
    }
