"""What another reward would have made of a token: the newest update once more, from its answers on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from rlplay.engine.batch import Batch
from rlplay.engine.replays import SettingsOf, as_scored, learned_again
from rlplay.engine.state import State
from rlplay.engine.target_value import target_value
from rlplay.trace.questions import Reach, Reached
from rlplay.trace.teachers import Target

Before = Callable[[], State]
"""Takes the run back to before the update of the batch at hand, and gives its state; see `Driver.answers`."""


def check_reach(question: Reach, batch: Batch | None, update: int) -> Batch:
    """The batch of the last finished `update`. Raises ValueError, one line, if the question cannot be answered."""
    if batch is None:
        raise ValueError("after a start, an undo or a resume the engine has no answers until the next update")
    if batch.update != update:
        raise ValueError("an update is under way: finish it, then ask")
    passes = batch.passes
    if passes is None or passes.settings.loss_type != "policy_gradient":
        raise ValueError("another reward needs loss_type=policy_gradient: other losses have no credit to repeat")
    if passes.settings.multi_objective_aggregation == "normalize_then_sum":
        raise ValueError("with multi_objective_aggregation=normalize_then_sum an answer has no single reward to change")
    assert batch.rewards is not None
    assert batch.outcomes is not None
    if not (0 <= question.completion < len(batch.lengths) and 0 <= question.token < batch.lengths[question.completion]):
        raise ValueError("the answer has no such token")
    if batch.rewards[question.completion].isnan():
        raise ValueError("no reward function answered for this answer, so it counts for nothing")
    if passes.settings.reward_stream != "outcome" and batch.outcomes[question.completion].isnan():
        raise ValueError("the steps of this answer earn its reward, so the whole has none to change")
    return batch


def reach(
    question: Reach, batch: Batch, before: Before, settings_of: SettingsOf, seed: int, interrupted: Callable[[], bool]
) -> Iterator[Reached]:
    """How likely the token would be after the update, for each reward of its answer; one answer after each.

    Everything but that reward is as it was: answers, random numbers, settings. The update begins with credit, because a
    reward changes nothing earlier. Where steps of an answer are scored, they are, too.
    """
    row, token = question.completion, question.token
    assert batch.rewards is not None
    found: list[float] = []
    for reward in question.rewards:
        state = before()
        for _ in learned_again(state, rewarded(batch, row, reward), settings_of, seed):
            pass
        found.append(probability(state, batch, row, token))
        ends = len(found) == len(question.rewards) or interrupted()
        yield Reached(
            row, token, batch.update, rewards=question.rewards[: len(found)], probabilities=[*found],
            reward=float(batch.rewards[row]), old=float(batch.old_logprobs[row, token].exp()), done=ends,
        )  # fmt: skip
        if ends:
            return


def rewarded(batch: Batch, row: int, reward: float) -> Batch:
    """The batch as it was sampled and scored, but with another reward of completion `row`."""
    assert batch.rewards is not None
    assert batch.outcomes is not None
    rewards, outcomes = batch.rewards.clone(), batch.outcomes.clone()
    outcomes[row] += reward - rewards[row]
    rewards[row] = reward
    return replace(as_scored(batch), rewards=rewards, outcomes=outcomes)


@torch.no_grad()
def probability(state: State, batch: Batch, row: int, token: int) -> float:
    """The policy's probability of a token of the batch, at the temperature it was sampled at."""
    group, (ids, mask) = int(batch.group[row]), batch.prompts.known
    target = Target(ids[group][mask[group].bool()].tolist(), batch.ids[row, : token + 1].tolist(), [token])
    return float(target_value(target, state.lm, batch.temperature).exp())
