"""Phase 1 of an update: the completions it learns from, and what else has to be sampled to judge them."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts, candidates, sampled_record
from rlplay.engine.episodes import asked
from rlplay.engine.merge import joined, selected
from rlplay.engine.mismatch import held_against
from rlplay.engine.retokenized import retokenize
from rlplay.engine.sample import Sampling, draw_prompts, sample, unseen
from rlplay.engine.score import score
from rlplay.engine.slate import Cut
from rlplay.engine.state import RunPlan, State
from rlplay.engine.survey import survey

_ROUNDS = 4
"""Times that missing groups are sampled again before an update makes do with those it has."""


def rollouts(state: State, plan: RunPlan) -> Generator[Sampling, None, Batch]:
    """Sample `num_generations` completions of `num_prompts` prompts; a moment per position, then the Batch.

    With dynamic sampling, groups without signal are replaced; with a greedy baseline, each prompt's likeliest
    completion is sampled and scored too. All of them come from the sampler (`sampler.py`).

    Raises Halt if a reward function fails, where rewards are needed already here.
    """
    settings = state.settings
    state.sampler.begin(state.lm, settings, state.update)
    batch = yield from _answers(state, plan, settings.num_prompts, 0, 0)
    if settings.dynamic_sampling:
        batch = yield from _with_signal(batch, state, plan)
    held_against(batch, state)
    if settings.retokenize_turns:
        score(batch, state)  # rewards are for what was said
        retokenize(batch, state)
    batch.survey = survey(state)
    if settings.baseline == "greedy":
        batch.greedy_rewards = yield from _greedy(batch, state, plan)
    return batch


def _answers(state: State, plan: RunPlan, count: int, skip: int, again: int) -> Generator[Sampling, None, Batch]:
    settings, lm, update = state.settings, state.sampling_lm, state.update + 1
    task = state.task
    counted = settings.logprobs_mode == "processed_logprobs" and settings.loss_type == "policy_gradient"
    prompts = Prompts.of(lm, asked(draw_prompts(task.train, count, plan.seed, update, skip), task.environment))
    batch = yield from sample(
        lm, prompts, generations=settings.num_generations, length=settings.max_completion_length,
        temperature=settings.temperature, keep=candidates(lm, settings), seed=plan.seed, update=update, again=again,
        environment=state.environment, cut=Cut.of(settings, counted),
    )  # fmt: skip
    return batch


def _with_signal(batch: Batch, state: State, plan: RunPlan) -> Generator[Sampling, None, Batch]:
    """Groups whose rewards differ, others sampled until there are `num_prompts` (DAPO, arXiv:2503.14476).

    If no group has a signal after all rounds, the first ones stay: the update will say so.
    """
    wanted, first, kept = state.settings.num_prompts, batch, list[Batch]()
    tried, found, tokens = 0, 0, 0
    for again in range(1, _ROUNDS + 1):
        score(batch, state)
        tried += len(batch.prompts.ids)
        tokens += int(batch.mask.sum())
        informative = informative_groups(batch)
        if len(informative):
            kept.append(selected(batch, informative))
            found += len(informative)
        if found == wanted or again == _ROUNDS:
            break
        batch = yield from _answers(state, plan, wanted - found, tried, again)
    result = joined(kept) if kept else first
    result.dropped_groups = tried - len(result.prompts.ids)
    result.dropped_tokens = tokens - int(result.mask.sum())
    return result


def informative_groups(batch: Batch) -> Tensor:
    """The groups, int64, in which not all known rewards are equal."""
    assert batch.rewards is not None
    rewards, group = batch.rewards.cpu().numpy(), batch.group.cpu().numpy()
    known = [rewards[(group == g) & ~np.isnan(rewards)] for g in range(len(batch.prompts.ids))]
    return torch.tensor([g for g, mine in enumerate(known) if len(set(mine)) > 1], dtype=torch.long)


def _greedy(batch: Batch, state: State, plan: RunPlan) -> Generator[Sampling, None, Tensor]:
    """The reward [G] of each prompt's likeliest completion (ReMax, arXiv:2310.10505)."""
    answers = sample(
        state.sampling_lm, batch.prompts, generations=1, length=state.settings.max_completion_length,
        temperature=state.settings.temperature, keep=1, seed=plan.seed, update=batch.update, greedy=True,
        environment=state.environment, cut=Cut.of(state.settings),
    )  # fmt: skip
    whole = Sampling(lambda: sampled_record(state.lm, batch, False, batch.ids.shape[1]))
    likeliest = yield from unseen(answers, whole)
    score(likeliest, state)
    assert likeliest.rewards is not None
    return likeliest.rewards.nan_to_num()
