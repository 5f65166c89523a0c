"""Values by sampling: a beginning of an answer is worth the mean reward of answers that go on from it.

VinePPO (Kazemnejad et al. 2024, arXiv:2410.01679) needs no value head: the states in which reasoning steps begin are
sampled on from, and a step's advantage is r + V(state after it) − V(state before it). Of an episode the steps are the
model's turns, and a state is the conversation up to a turn, that of the environment included.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from rlplay.engine import ranks
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.begun import Begun
from rlplay.engine.episodes import conversation, turns
from rlplay.engine.reasoning import step_ends
from rlplay.engine.reward_calls import Completions
from rlplay.engine.sample import VINES, sample, unseen
from rlplay.engine.score import graded, totals, weighted
from rlplay.engine.slate import Cut
from rlplay.engine.state import State
from rlplay.engine.tensors import group_statistics
from rlplay.tasks.own_rewards import accepted
from rlplay.tasks.tools import Tools
from rlplay.trace.records import Array


@dataclass(frozen=True)
class Vining:
    """A moment while values are being sampled: an occasion to stop, nothing to see."""


class _Beginning(NamedTuple):
    """A state: the tokens that answer prompt `group` so far, and what of the environment they may not show."""

    group: int
    ids: tuple[int, ...]
    hidden: tuple[str, ...] = ()


class _Place(NamedTuple):
    """A completion that passed through a state, and how many turns it had had."""

    row: int
    turns: int


def vine(batch: Batch, state: State, seed: int) -> Iterator[Vining]:
    """Cut answers into reasoning steps, episodes into turns, and sample the value of each state in which one begins.

    Fills `batch.vine_ends` and `batch.vine_values` [N, L], the same value for all tokens of a step. A value is the
    mean of γ^(n − 1)·R over `vine_samples` answers of n more tokens by whoever sampled the completions, which is the
    policy unless the settings ask for a sampler apart; they are cut where the completions were. Equal states are
    sampled once. An environment is given the same turns and random numbers again, and others from there on; tools are
    called again. Repeats itself for the same (seed, update) and the same completions.

    Raises Halt if a reward function fails, or if an environment does not come to the same state again.
    """
    rows = [row[:n] for row, n in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
    steps = [_steps(batch, n, rows[n], state) for n in range(len(rows))]
    hidden = _hides(state)
    states: dict[_Beginning, _Place] = {}
    begun: list[list[_Beginning]] = []
    for n, (group, row) in enumerate(zip(batch.group.tolist(), rows, strict=True)):
        begun.append(
            [
                _Beginning(group, tuple(row[:begin]), _hidden(batch, n, k) if hidden else ())
                for k, (begin, _) in enumerate(steps[n])
            ]
        )
        for k, each in enumerate(begun[-1]):
            states.setdefault(each, _Place(n, k))
    values = yield from _values(batch, states, state, seed)
    batch.vine_ends = torch.zeros_like(batch.mask)
    batch.vine_values = torch.zeros(batch.mask.shape, dtype=torch.double)
    for n in range(len(rows)):
        for each, (begin, end) in zip(begun[n], steps[n], strict=True):
            batch.vine_ends[n, end - 1] = True
            batch.vine_values[n, begin:end] = values[each]


def _steps(batch: Batch, n: int, ids: list[int], state: State) -> list[tuple[int, int]]:
    """Where the steps of completion `n` begin, and the tokens behind them."""
    if state.task.environment is not None:
        return list(turns(batch.known_masks[0][n, : len(ids)].tolist()))
    texts = state.lm.texts(ids)
    ends = step_ends(["" if i in state.lm.end_ids else text for i, text in zip(ids, texts, strict=True)])
    return list(zip([0, *(end + 1 for end in ends[:-1])], [end + 1 for end in ends], strict=True))


def _hides(state: State) -> bool:
    """Whether the environment may be in several states after the same words: it uses random numbers."""
    environment = state.task.environment
    if environment is None or isinstance(environment, Tools):
        return False
    return "chances" in accepted(environment, {"chances": None})


def _hidden(batch: Batch, row: int, count: int) -> tuple[str, ...]:
    """The environment's true states after `count` turns, or the numbers that decided them if it does not name any."""
    path = tuple(batch.states.get(row, [])[:count])
    return path if all(path) else tuple(map(repr, batch.chances[row][:count].tolist()))


def _values(
    batch: Batch, states: dict[_Beginning, _Place], state: State, seed: int
) -> Generator[Vining, None, dict[_Beginning, float]]:
    # As many rows at once as completions were sampled, which is known to fit; alike in length, so that few are padded.
    at_once = max(1, len(batch.group) // state.settings.vine_samples)
    ordered = sorted(states, key=lambda each: (len(each.ids), each))
    values: dict[_Beginning, float] = {}
    for part, first in enumerate(range(0, len(ordered), at_once)):
        some = ordered[first : first + at_once]
        found = yield from _sampled_on(batch, {each: states[each] for each in some}, state, seed, part)
        values |= dict(zip(some, found.tolist(), strict=True))
    return values


def _sampled_on(
    batch: Batch, places: dict[_Beginning, _Place], state: State, seed: int, part: int
) -> Generator[Vining, None, Array]:
    """The values of some states, float64 [len(places)]."""
    lm, settings, prompts, states = state.lm, state.settings, batch.prompts, list(places)
    examples = [prompts.examples[each.group] for each in states]
    begun = None
    if state.task.environment is not None:
        begun = [_begun(batch, each, place, state) for each, place in places.items()]
    asked = Prompts.padded(lm, examples, [prompts.row(each.group) + list(each.ids) for each in states], begun)
    shortest = min(len(each.ids) for each in states)
    more = yield from unseen(
        sample(
            state.sampling_lm, asked, generations=settings.vine_samples,
            length=settings.max_completion_length - shortest,
            temperature=batch.temperature, keep=1, seed=seed, update=batch.update, again=part,
            stream=VINES, environment=state.environment, cut=Cut.of(settings),
        ),
        Vining(),
    )  # fmt: skip
    group = more.group.tolist()
    lengths = [
        min(n, settings.max_completion_length - len(states[g].ids))
        for g, n in zip(group, more.lengths.tolist(), strict=True)
    ]
    own = [row[:n] for row, n in zip(more.known_masks[0].tolist(), lengths, strict=True)]
    batch.vine_tokens += sum(map(sum, own))
    given = _whole(batch, more, lengths, own, places, state)
    found, weights = ranks.first(lambda: graded(given, state))
    discounts = np.power(settings.gamma, np.array([sum(row) for row in own]) - 1.0)
    discounted = torch.from_numpy(weighted(totals(found), weights) * discounts)
    unknown = discounted.isnan().reshape(len(states), -1).all(-1)
    mean, _ = group_statistics(discounted, more.group.cpu(), len(states))
    return mean.masked_fill(unknown, torch.nan).numpy()


def _begun(batch: Batch, beginning: _Beginning, place: _Place, state: State) -> Begun:
    """What happened up to a state, as it did in the completion at `place`."""
    (row, count), (ids,) = place, batch.on_host("ids")
    spans = list(turns(batch.known_masks[0][row, : len(beginning.ids)].tolist()))
    return Begun(
        turns=[state.lm.decode(ids[row, start:end].tolist()) for start, end in spans],
        replies=batch.replies.get(row, [])[:count],
        states=batch.states.get(row, [])[:count],
        chances=batch.chances[row][:count],
        calls=batch.answering[row].turns[:count] if batch.answering else [],
        room=state.settings.max_completion_length - len(beginning.ids),
    )


def _whole(
    batch: Batch, more: Batch, lengths: list[int], own: list[list[bool]], places: dict[_Beginning, _Place], state: State
) -> Completions:
    """What reward functions see of answers that go on from states: each from its first token on."""
    states, rows = list(places), range(len(lengths))
    group, played = more.group.tolist(), state.task.environment is not None
    written = zip(group, more.ids.tolist(), lengths, strict=True)
    answers = [[*states[g].ids, *row[:n]] for g, row, n in written]
    said = None
    if played:
        before = batch.known_masks[0].tolist()
        sampled = [
            [*before[places[states[g]].row][: len(states[g].ids)], *new] for g, new in zip(group, own, strict=True)
        ]
        said = [
            conversation(
                state.lm, answers[row], sampled[row], more.replies.get(row, []),
                batch.prompts.row(states[group[row]].group) if more.answering else None,
            )
            for row in rows
        ]  # fmt: skip
    return Completions(
        examples=[batch.prompts.examples[states[g].group] for g in group],
        ids=answers,
        texts=[state.lm.decode(row) for row in answers],
        turns=said,
        states=[more.states.get(row, []) for row in rows] if played else None,
        environments=[answering.environment for answering in more.answering],
    )
