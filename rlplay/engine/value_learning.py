"""Q-learning and SARSA on a tiny world: one update, phase by phase.

A sibling of the policy gradient in `loop.py`: the same phases, the same records. The table's outputs are Q(s, a), the
moves are ε-greedy by Q, and no gradient passes through anything: each move's value takes one step towards its target,
in the order in which the moves were made (Sutton and Barto 2018, sections 6.4 and 6.5). Unlike there, the policy that
plays is that of the update's beginning: it follows Q once the update's episodes are over.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms.settings import Settings
from rlplay.algorithms.value_losses import VALUE_LOSSES, moved, target, td_error
from rlplay.engine.batch import Batch, sampled_record
from rlplay.engine.credit_phase import token_rewards
from rlplay.engine.model import LanguageModel
from rlplay.engine.optimize import TrainedMinibatch, stepped
from rlplay.engine.rollouts import rollouts
from rlplay.engine.sample import Sampling
from rlplay.engine.score import score
from rlplay.engine.state import Halt, RunPlan, State
from rlplay.engine.tensors import group_statistics
from rlplay.engine.transfer import to_host
from rlplay.engine.update_summary import finished, length_metrics, of_steps, reward_metrics
from rlplay.engine.withheld import withhold
from rlplay.engine.world_policy import WorldPolicy, is_table
from rlplay.scenario.scenario_world import check_squares
from rlplay.trace.records import AnyRecord, Array, Credited, Finished
from rlplay.worlds.values import no_values
from rlplay.worlds.world import World


def learn_action_values(state: State, plan: RunPlan) -> Generator[Sampling | AnyRecord, None, Finished]:
    """One update: play episodes, score them, compare each move's value with its target, step, look again.

    Raises Halt, before the table is touched, if a value is not finite.
    """
    state.batch = batch = yield from rollouts(state, plan)  # episodes by the ε-greedy policy
    yield sampled_record(state.lm, batch, True, batch.ids.shape[1])
    yield (scored := score(batch, state))
    learned = sweep(batch, state)
    yield _credited(batch, learned)
    with torch.no_grad():
        state.lm.policy.head.weight.copy_(torch.from_numpy(learned.table))
    seen = _seen(batch, learned, state.settings)
    batch.step_metrics.append(seen.metrics)
    yield stepped(batch, seen, seen.metrics)
    metrics = reward_metrics(scored, batch, "") | length_metrics(batch, "") | of_steps(batch)
    metrics["entropy"] = batch.on_host("entropy")[0][batch.known_masks[0]].mean().item()
    return finished(batch, metrics, state)


@dataclass
class TablePass:
    """The table [A, V] after a pass over a batch's moves; of each move, all [N, L] on the CPU: its reward, what follows
    it (0 at the end of an episode), its target, Q(s, a) just before its own step, and δ."""

    table: Array
    rewards: Tensor
    following: Tensor
    targets: Tensor
    values: Tensor
    errors: Tensor


def sweep(batch: Batch, state: State) -> TablePass:
    """Move Q(s, a) towards its target, move after move, on a copy of the table; nothing else changes.

    Episodes that no reward function scored are left out, and moves whose credit is taken away.
    Raises Halt if a value is not finite.
    """
    settings, loss = state.settings, VALUE_LOSSES[state.settings.loss_type]
    withhold(batch, state)
    table: Array = state.lm.policy.head.weight.detach().cpu().numpy().copy()
    rewards = token_rewards(batch, settings, 0.0).numpy().astype(table.dtype)
    before = torch.cat([batch.prompts.ids[batch.group][:, -1:], batch.ids[:, :-1]], dim=1)
    squares, moves, mask = (tensor.numpy() for tensor in to_host([before, batch.ids, batch.mask]))
    following, targets, values, errors = (np.zeros_like(rewards) for _ in range(4))
    withheld = np.zeros_like(mask) if batch.withheld is None else batch.withheld.numpy()
    assert batch.rewards is not None
    for row in (~batch.rewards.isnan()).nonzero().flatten().tolist():
        places = np.flatnonzero(mask[row]).tolist()
        for place, then in zip(places, [*places[1:], None], strict=True):
            if then is not None:
                following[row, place] = loss.following(table[:, squares[row, then]], moves[row, then])
            entry, here = (moves[row, place], squares[row, place]), (row, place)
            values[here] = table[entry]
            targets[here] = target(rewards[here], settings.gamma, following[here])
            if withheld[here]:
                continue
            errors[here] = td_error(targets[here], values[here])
            table[entry] = moved(values[here], settings.learning_rate, errors[here])
    if not np.isfinite(table).all():
        raise Halt(f"update {batch.update}: Q is not finite, and was not changed; lower learning_rate or gamma")
    return TablePass(table, *(torch.from_numpy(each) for each in (rewards, following, targets, values, errors)))


def check_world(settings: Settings, lm: LanguageModel, world: World | None) -> None:
    """Raises ValueError, one line, if the settings ask of the world or its policy what they do not have."""
    check_squares(world, settings.squares)
    if problem := no_values(settings, world, is_table(lm.policy)):
        raise ValueError(problem)


def explore(state: State) -> None:
    """Let the policies choose as the settings say: ε-greedy by Q, or by the softmax of a policy gradient."""
    rate = state.settings.exploration_rate if state.settings.loss_type in VALUE_LOSSES else None
    for policy in (state.lm.policy, state.lm.reference):
        if isinstance(policy, WorldPolicy) and policy.config.exploration_rate != rate:
            policy.config.exploration_rate = rate
            state.lm.fixed_steps.clear()  # graphs hold the rate with which they were captured


def _credited(batch: Batch, learned: TablePass) -> Credited:
    assert batch.rewards is not None
    batch.put(returns=learned.targets, advantages=learned.errors)
    mean, std = group_statistics(batch.rewards, batch.on_host("group")[0], len(batch.prompts.ids))
    tokens = {
        "token_rewards": learned.rewards, "returns": learned.targets, "advantages": learned.errors,
        "values": learned.values, "following": learned.following,
    }  # fmt: skip
    return Credited(update=batch.update, group_mean=mean.numpy(), group_std=std.numpy(), **batch.flat_each(tokens))


def _seen(batch: Batch, learned: TablePass, settings: Settings) -> TrainedMinibatch:
    """The one step: a loss of ½·mean δ², whose derivative by Q(s, a) is −δ over the number of moves."""
    mask = batch.known_masks[0]
    errors, count = learned.errors[mask], int(mask.sum())
    metrics = {
        "loss": 0.5 * errors.square().mean().item(),
        "td_error": errors.abs().mean().item(),
        "learning_rate": settings.learning_rate,
    }
    (old_logprobs,) = batch.on_host("old_logprobs")
    return TrainedMinibatch(
        torch.arange(len(batch.group)), old_logprobs, torch.ones_like(old_logprobs), -learned.errors / count, metrics
    )
