"""Phase 2, scoring: the weighted sum of the rewards, and the scores that are only tracked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.engine import ranks
from rlplay.engine.batch import Batch
from rlplay.engine.episodes import messages
from rlplay.engine.logged import Logged
from rlplay.engine.model import LanguageModel
from rlplay.engine.reward_calls import LARGEST, TOO_LARGE, Answer, Completions, called
from rlplay.engine.reward_model import payable, rewards_of
from rlplay.engine.state import Halt, State
from rlplay.tasks.task import RewardFunction
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array, Scored

_DIGITS = 12
"""Significant digits of a sum of rewards: rounding has not touched these, so that 0.1 + 0.2 is 0.3."""


_GIVEN = ("completions", "parts", "weights", "rewards", "outcomes", "step_scores", "step_ends", "scored")
"""What scoring fills in of a batch."""


def score(batch: Batch, state: State) -> Scored:
    """Reward every completion; `batch.rewards` [N] is the weighted sum of the parts that answered, NaN if none did.

    Where a function scores steps, its part is their sum, `batch.step_scores` [N, L] holds them, weighted, on the
    tokens that end the steps, and `batch.outcomes` [N] is the weighted sum of the other functions. All are float64 on
    the CPU: rewards are rounded to the loss's precision only once they have been compared. Of several processes only
    the first calls the functions, which may be slow or random.

    Raises Halt as `graded` does, if no function answered at all, and if the weights make a reward too large.
    """
    if batch.scored is None:  # dynamic sampling had to know the rewards already

        def found() -> dict[str, Any]:
            _score(batch, state)
            return {name: getattr(batch, name) for name in _GIVEN}

        for name, value in ranks.first(found).items():
            setattr(batch, name, value)
    assert batch.scored is not None
    return batch.scored


def _score(batch: Batch, state: State) -> None:
    sampled, lengths, group = (values.tolist() for values in batch.on_host("ids", "lengths", "group"))
    ids = [row[:n] for row, n in zip(sampled, lengths, strict=True)]
    batch.completions = [state.lm.decode(row) for row in ids]
    examples = [batch.prompts.examples[g] for g in group]
    played = state.task.environment is not None
    turns = [messages(state.lm, batch, row) for row in range(len(ids))] if played else None
    states = [batch.states.get(row, []) for row in range(len(ids))] if played else None
    environments = [answering.environment for answering in batch.answering]
    given = Completions(examples, ids, batch.completions, turns, states, environments)
    logged = Logged(len(ids))
    if batch.answering:
        calls, failures = (sum(getattr(a, name) for a in batch.answering) for name in ("calls", "failures"))
        logged.log_metric("tools/call_frequency", calls / len(ids))
        logged.log_metric("tools/failure_frequency", failures / calls if calls else 0.0)
    answers, weights = graded(given, state, logged)
    parts = totals(answers)
    gold = totals(called(tracked(state), given, state, logged))
    rewards = weighted(parts, weights) if parts else np.full(len(ids), np.nan)
    if np.isnan(rewards).all():
        raise Halt(f"no reward function answered for any completion ({', '.join(weights) or 'every weight is 0'})")
    if (largest := float(np.nanmax(np.abs(rewards)))) > LARGEST:
        raise Halt(f"a weighted reward is {compact(largest)}, {TOO_LARGE}; lower reward_weights, then go on")
    batch.parts, batch.weights = parts, weights
    batch.rewards = torch.from_numpy(rewards)
    batch.outcomes = torch.from_numpy(weighted(outcomes(answers), weights))
    batch.step_scores, batch.step_ends = place_steps(batch, state.lm, answers, weights)
    batch.scored = Scored(
        update=batch.update, rewards=rewards, parts=parts, weights=weights, gold=gold,
        extra=logged.extra, logged=logged.means(),
    )  # fmt: skip


def graded(
    given: Completions, state: State, logged: Logged | None = None
) -> tuple[dict[str, list[Answer]], dict[str, float]]:
    """What each reward function answered, and its weight; functions of weight 0 are not called.

    Raises Halt as `called` does.
    """
    weights, rewards = weights_of(state), payable(state)
    return called({name: rewards[name] for name in weights}, given, state, logged or Logged(len(given.texts))), weights


def tracked(state: State) -> dict[str, RewardFunction]:
    """The scores beside the reward: the task's gold scores, and the rewards whose weight is set to 0.

    Raises Halt, one line, if two different functions among them have the same name.
    """
    known, weights = rewards_of(state), state.settings.reward_weights
    weightless = {name: function for name, function in known.items() if weights.get(name) == 0}
    for name, function in weightless.items():
        if state.task.gold.get(name, function) is not function:
            raise Halt(f"the task has another gold score {name!r}; rename your reward function, then start again")
    return weightless | state.task.gold


def weights_of(state: State) -> dict[str, float]:
    """The weight of each reward function that counts, by the settings."""
    wanted = state.settings.reward_weights or dict.fromkeys(rewards_of(state), 1.0)
    return {name: float(wanted[name]) for name in payable(state) if wanted.get(name)}


def totals(answers: dict[str, list[Answer]]) -> dict[str, Array]:
    """One number per completion and function, NaN where it did not answer: float64 [N] each."""
    return {name: np.array([_total(a) for a in given], dtype=np.float64) for name, given in answers.items()}


def outcomes(answers: dict[str, list[Answer]]) -> dict[str, Array]:
    """The same of whole completions alone: NaN too where a function scored steps."""
    return totals({name: [math.nan if isinstance(a, list) else a for a in given] for name, given in answers.items()})


def weighted(parts: dict[str, Array], weights: dict[str, float]) -> Array:
    """Σ weight·part of those that answered, NaN where none did: float64 [N]."""
    rows = np.stack([weights[name] * part for name, part in parts.items()]).T.tolist()
    terms = ([term for term in row if not math.isnan(term)] for row in rows)
    return np.array([_sum(some) if some else math.nan for some in terms])


def _total(answer: Answer) -> float:
    return _sum([value for _, value in answer]) if isinstance(answer, list) else answer


def _sum(terms: list[float]) -> float:
    """Their sum to `_DIGITS` digits of the largest: sums that are equal on paper are equal here, and so no signal."""
    largest = max(map(abs, terms), default=0.0)
    if len(terms) < 2 or not largest:
        return sum(terms)
    return round(sum(terms), _DIGITS - 1 - math.floor(math.log10(largest)))


def place_steps(
    batch: Batch, lm: LanguageModel, answers: dict[str, list[Answer]], weights: dict[str, float]
) -> tuple[Tensor, Tensor]:
    """Weighted step scores, float64 [N, L], on the tokens that end the steps, and where steps end, bool [N, L].

    A step that reaches `end` characters of the completion ends on the token that completes that character.
    """
    scores = torch.zeros(batch.ids.shape, dtype=torch.double)
    ends = torch.zeros(batch.ids.shape, dtype=torch.bool)
    for name, given in answers.items():
        for row, steps in enumerate(given):
            if not isinstance(steps, list):
                continue
            reached = _characters(lm, batch, row)
            for end, value in steps:
                place = min(int(np.searchsorted(reached, end)), len(reached) - 1)
                scores[row, place] += weights[name] * value
                ends[row, place] = True
    return scores, ends


def _characters(lm: LanguageModel, batch: Batch, row: int) -> Array:
    """How many characters of the model's own words each token of a completion completes, all told: int64 [tokens]."""
    every, lengths = batch.on_host("ids", "lengths")
    ids, sampled = every[row, : lengths[row]].tolist(), batch.known_masks[0][row].tolist()
    special = set(lm.tokenizer.all_special_ids)
    texts = zip(ids, lm.texts(ids), sampled, strict=False)
    return np.cumsum([len(text) if own and i not in special else 0 for i, text, own in texts])
