"""Phase 2, scoring: reward functions called the way TRL calls them, and their answers checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch
from rlplay.engine.episodes import messages
from rlplay.engine.model import LanguageModel
from rlplay.engine.reward_model import rewards_of
from rlplay.engine.state import Halt, State
from rlplay.tasks.own import accepted
from rlplay.tasks.task import Completion, Example, Message, RewardFunction, Steps
from rlplay.trace.records import Array, Scored
from rlplay.user_code import OwnError

Answer = float | Steps
"""One completion's score, NaN for None; or for each step the characters it reaches and its score."""

LARGEST = 1e15
"""The largest reward. Gradients are up to some thousand times as large, and float32 cannot square more than 1.8e19."""

_TOO_LARGE, _SMALLER = f"more than the {LARGEST:g} that training in float32 has room for", "scale it down, then go on"

_DIGITS = 12
"""Significant digits of a sum of rewards: rounding has not touched these, so that 0.1 + 0.2 is 0.3."""


@dataclass(frozen=True)
class Completions:
    """What reward functions see: the examples that are answered, the answers' token ids and their texts."""

    examples: list[Example]
    ids: list[list[int]]
    texts: list[str]
    turns: list[list[Message]] | None = None  # of episodes with an environment
    states: list[list[str]] | None = None  # the environment's, after each turn

    @property
    def handed(self) -> Sequence[Completion]:
        """Each answer the way TRL hands it over: as messages if its prompt was messages."""
        if self.turns is not None:
            return self.turns
        both = zip(self.examples, self.texts, strict=True)
        return [t if isinstance(e.prompt, str) else [{"role": "assistant", "content": t}] for e, t in both]


def score(batch: Batch, state: State) -> Scored:
    """Reward every completion; `batch.rewards` [N] is the weighted sum of the parts that answered, NaN if none did.

    Where a function scores steps, its part is their sum, `batch.step_scores` [N, L] holds them, weighted, on the
    tokens that end the steps, and `batch.outcomes` [N] is the weighted sum of the other functions. All are float64 on
    the CPU: rewards are rounded to the loss's precision only once they have been compared.

    Raises Halt as `graded` does, if no function answered at all, and if the weights make a reward too large.
    """
    if batch.scored is not None:  # dynamic sampling had to know the rewards already
        return batch.scored
    ids = [row[:n] for row, n in zip(batch.ids.tolist(), batch.lengths.tolist(), strict=True)]
    batch.completions = [state.lm.decode(row) for row in ids]
    examples = [batch.prompts.examples[g] for g in batch.group.tolist()]
    played = state.task.environment is not None
    turns = [messages(state.lm, batch, row) for row in range(len(ids))] if played else None
    states = [batch.states.get(row, []) for row in range(len(ids))] if played else None
    given = Completions(examples, ids, batch.completions, turns, states)
    answers, weights = graded(given, state)
    parts = totals(answers)
    gold = totals({name: _call(name, f, given) for name, f in state.task.gold.items()})
    rewards = weighted(parts, weights)
    if np.isnan(rewards).all():
        raise Halt(f"no reward function answered for any completion ({', '.join(weights) or 'every weight is 0'})")
    if (largest := float(np.nanmax(np.abs(rewards)))) > LARGEST:
        raise Halt(f"a weighted reward is {largest:g}, {_TOO_LARGE}; lower reward_weights, then go on")
    batch.parts, batch.weights = parts, weights
    batch.rewards = torch.from_numpy(rewards)
    batch.outcomes = torch.from_numpy(weighted(outcomes(answers), weights))
    batch.step_scores, batch.step_ends = place_steps(batch, state.lm, answers, weights)
    batch.scored = Scored(update=batch.update, rewards=rewards, parts=parts, weights=weights, gold=gold)
    return batch.scored


def graded(given: Completions, state: State) -> tuple[dict[str, list[Answer]], dict[str, float]]:
    """What each reward function answered, and its weight; functions of weight 0 are not called.

    Raises Halt if a reward function fails, answers the wrong number of scores, or a score is not finite or too large.
    """
    weights, rewards = weights_of(state), rewards_of(state)
    return {name: _call(name, rewards[name], given) for name in weights}, weights


def weights_of(state: State) -> dict[str, float]:
    """The weight of each reward function that counts, by the settings."""
    names = rewards_of(state)
    wanted = state.settings.reward_weights or dict.fromkeys(names, 1.0)
    return {name: float(wanted[name]) for name in names if wanted.get(name)}


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
    ids, sampled = batch.ids[row, : batch.lengths[row]].tolist(), batch.mask[row].tolist()
    special = set(lm.tokenizer.all_special_ids)
    texts = zip(ids, lm.texts(ids), sampled, strict=False)
    return np.cumsum([len(text) if own and i not in special else 0 for i, text, own in texts])


def _call(name: str, function: RewardFunction, given: Completions) -> list[Answer]:
    examples = given.examples
    keys = {key for example in examples for key in example.columns}
    arguments: dict[str, Any] = {key: [example.columns.get(key) for example in examples] for key in keys}
    arguments |= {
        "prompts": [example.prompt for example in examples],
        "completions": given.handed,
        "completion_ids": given.ids,
    } | ({} if given.states is None else {"states": given.states})
    try:
        answers = function(**accepted(function, arguments))
    except Exception as error:
        what = str(error) if isinstance(error, OwnError) else f"{type(error).__name__}: {error}"
        raise Halt(f"reward function {name!r} failed: {what}; mend it, then go on") from error
    return _checked(name, answers, given.texts)


def _checked(name: str, answers: Any, texts: list[str]) -> list[Answer]:
    if isinstance(answers, (np.ndarray, Tensor)):
        answers = answers.tolist()
    if not isinstance(answers, (list, tuple)) or len(answers) != len(texts):
        found = type(answers).__name__
        if hasattr(answers, "__len__"):
            found = "1 score" if len(answers) == 1 else f"{len(answers)} scores"
        raise Halt(f"reward function {name!r} gave {found}; it must give a list of {len(texts)} numbers")
    try:
        read = [_read(answer) for answer in answers]
    except (TypeError, ValueError):
        raise Halt(
            f"reward function {name!r} gave something that is not a number, None or a list of (end, score) pairs"
        ) from None
    except OverflowError:
        raise Halt(f"reward function {name!r} gave a number too large to compute with; {_SMALLER}") from None
    for i, (answer, value) in enumerate(zip(answers, read, strict=True)):
        if answer is None:
            continue
        scores = [score for _, score in value] if isinstance(value, list) else [value]
        where = f"for completion {i}, {texts[i][:60]!r}"
        if not all(map(math.isfinite, scores)):
            raise Halt(f"reward function {name!r} gave {value} {where}; mend it, then go on")
        if (largest := max(map(abs, [*scores, _total(value)]), default=0.0)) > LARGEST:
            raise Halt(f"reward function {name!r} gave {largest:g} {where}, {_TOO_LARGE}; {_SMALLER}")
    return read


def _read(answer: Any) -> Answer:
    if isinstance(answer, (list, tuple)):
        return [(int(end), float(value)) for end, value in answer]
    return math.nan if answer is None else float(answer)
