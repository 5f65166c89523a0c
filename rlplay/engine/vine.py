"""Values by sampling: a beginning of an answer is worth the mean reward of answers that go on from it.

VinePPO (Kazemnejad et al. 2024, arXiv:2410.01679) needs no value head: the states in which reasoning steps begin are
sampled on from, and a step's advantage is r + V(state after it) − V(state before it).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from rlplay.engine import ranks
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.reasoning import step_ends
from rlplay.engine.reward_calls import Completions
from rlplay.engine.sample import VINES, sample, unseen
from rlplay.engine.score import graded, totals, weighted
from rlplay.engine.state import Halt, State
from rlplay.engine.tensors import group_statistics
from rlplay.trace.records import Array


@dataclass(frozen=True)
class Vining:
    """A moment while values are being sampled: an occasion to stop, nothing to see."""


class _Beginning(NamedTuple):
    """A state: the tokens that answer prompt `group` so far."""

    group: int
    ids: tuple[int, ...]


def vine(batch: Batch, state: State, seed: int) -> Iterator[Vining]:
    """Cut the answers into reasoning steps and sample the value of each state in which one begins.

    Fills `batch.vine_ends` and `batch.vine_values` [N, L], the same value for all tokens of a step. A value is the
    mean of γ^(n − 1)·R over `vine_samples` answers of n more tokens by the current policy, cut where the completions
    were. Equal states are sampled once. Repeats itself for the same (seed, update) and the same completions.

    Raises Halt if a reward function fails.
    """
    if state.task.environment is not None:
        raise Halt("returns=vine can't continue an episode with an environment mid-way; choose another")
    rows = [row[:n] for row, n in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
    ends = [_ends(row, state) for row in rows]
    begins = [[0, *(end + 1 for end in row[:-1])] for row in ends]
    states = [
        [_Beginning(group, tuple(row[:begin])) for begin in begun]
        for group, row, begun in zip(batch.group.tolist(), rows, begins, strict=True)
    ]
    values = yield from _values(batch, {each for row in states for each in row}, state, seed)
    batch.vine_ends = torch.zeros_like(batch.mask)
    batch.vine_values = torch.zeros(batch.mask.shape, dtype=torch.double)
    for n in range(len(rows)):
        batch.vine_ends[n, ends[n]] = True
        for each, begin, end in zip(states[n], begins[n], ends[n], strict=True):
            batch.vine_values[n, begin : end + 1] = values[each]


def _ends(ids: list[int], state: State) -> list[int]:
    texts = state.lm.texts(ids)
    return step_ends(["" if i in state.lm.end_ids else text for i, text in zip(ids, texts, strict=True)])


def _values(
    batch: Batch, states: set[_Beginning], state: State, seed: int
) -> Generator[Vining, None, dict[_Beginning, float]]:
    # As many rows at once as completions were sampled, which is known to fit; alike in length, so that few are padded.
    at_once = max(1, len(batch.group) // state.settings.vine_samples)
    ordered = sorted(states, key=lambda each: (len(each.ids), each))
    values: dict[_Beginning, float] = {}
    for part, first in enumerate(range(0, len(ordered), at_once)):
        some = ordered[first : first + at_once]
        found = yield from _sampled_on(batch, some, state, seed, part)
        values |= dict(zip(some, found.tolist(), strict=True))
    return values


def _sampled_on(
    batch: Batch, states: list[_Beginning], state: State, seed: int, part: int
) -> Generator[Vining, None, Array]:
    """The values of some states, float64 [len(states)]."""
    lm, settings, prompts = state.lm, state.settings, batch.prompts
    asked = [ids[mask.bool()].tolist() for ids, mask in zip(prompts.ids, prompts.mask, strict=True)]
    examples = [prompts.examples[each.group] for each in states]
    begun = Prompts.padded(lm, examples, [asked[each.group] + list(each.ids) for each in states])
    shortest = min(len(each.ids) for each in states)
    more = yield from unseen(
        sample(
            lm, begun, generations=settings.vine_samples, length=settings.max_completion_length - shortest,
            temperature=batch.temperature, keep=1, seed=seed, update=batch.update, again=part,
            stream=VINES, top_p=settings.top_p, top_k=settings.top_k,
        ),
        Vining(),
    )  # fmt: skip
    answers, lengths = [], []
    for g, row, n in zip(more.group.tolist(), more.ids.tolist(), more.lengths.tolist(), strict=True):
        lengths.append(min(n, settings.max_completion_length - len(states[g].ids)))
        answers.append([*states[g].ids, *row[: lengths[-1]]])
    batch.vine_tokens += sum(lengths)
    texts = [lm.decode(row) for row in answers]
    asked_of = Completions([examples[g] for g in more.group.tolist()], answers, texts)
    given, weights = ranks.first(lambda: graded(asked_of, state))
    discounted = torch.from_numpy(weighted(totals(given), weights) * np.power(settings.gamma, np.array(lengths) - 1.0))
    unknown = discounted.isnan().reshape(len(states), -1).all(-1)
    mean, _ = group_statistics(discounted, more.group.cpu(), len(states))
    return mean.masked_fill(unknown, torch.nan).numpy()
