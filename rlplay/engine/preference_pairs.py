"""Pairs of answers and who says which is better: phases 1 and 2 of an update that learns from preferences.

Pairs come from the user's file, or the model of the start, or the policy, writes two answers to each prompt. Labels
come from the file, from the user, or from a simulated labeller who sees the hidden gold score and errs as `label_noise`
says. Two answers that are the same text, or that the simulated labeller scores the same, tie: they carry no preference
and get no label. All of it is a function of (seed, update) and, where the user labels, of the choices made.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rlplay.algorithms.pair_losses import IMITATIONS
from rlplay.algorithms.settings import LossType
from rlplay.engine.batch import Batch, Prompts, candidates, sampled_record
from rlplay.engine.episodes import asked
from rlplay.engine.optimize import TrainedMinibatch, optimize
from rlplay.engine.reward_model import rewards_of
from rlplay.engine.sample import Sampling, draw_prompts, sample
from rlplay.engine.score import score
from rlplay.engine.slate import Cut
from rlplay.engine.state import Halt, RunPlan, State
from rlplay.engine.teacher_forcing import observed, written
from rlplay.tasks.task import Example
from rlplay.trace.pairs import identical_answers
from rlplay.trace.records import Array, Notice, Sampled, Scored, Searched, Stepped

_SECOND = {"a": 0.0, "b": 1.0, "skip": np.nan}
"""Whether a choice is for the second answer of a pair; NaN for neither."""
ROUNDING = 1e-6
"""Scores nearer than this, as they are or relative to their size, are the same: they are sums of float32 numbers."""


@dataclass(frozen=True)
class Unlabelled:
    """A moment of waiting: the user has pairs of this update left to label. It comes again until none is left."""


@dataclass(frozen=True)
class PairRows:
    """Which completions of a batch are compared: int64 [P] each on the CPU, pair by pair; `rejected` [0] for
    demonstrations."""

    chosen: Tensor
    rejected: Tensor

    def rows(self, which: Tensor) -> Tensor:
        """The completions of the pairs `which`, chosen ones first."""
        return torch.cat([self.chosen[which], self.rejected[which] if len(self.rejected) else self.rejected])


def draw_pairs(state: State, plan: RunPlan) -> Generator[Sampling | Sampled, None, tuple[Batch, Array]]:
    """Phase 1: `num_prompts` prompts with two answers each, or with one where it is only imitated.

    Returns the batch, and of each prompt whether its two answers are alike: bool [P].
    """
    settings, lm, update = state.settings, state.lm, state.update + 1
    examples = draw_prompts(state.task.train, settings.num_prompts, plan.seed, update)
    prompts, keep = Prompts.of(lm, asked(examples, state.task.environment)), candidates(lm, settings)
    if texts := given_answers(examples, settings.loss_type, _swapped(plan, update, len(examples))):
        group = torch.arange(len(examples), device=lm.device).repeat_interleave(len(texts) // len(examples))
        batch = written(lm, prompts, group, texts, settings.max_completion_length, update)
    else:
        # By the model of the start, what is compared does not depend on what was learned from earlier pairs.
        writer = lm if settings.answers_of == "policy" else replace(lm, policy=lm.start)
        batch = yield from sample(
            writer, prompts, generations=2, length=settings.max_completion_length,
            temperature=settings.temperature, keep=keep, seed=plan.seed, update=update,
            environment=state.environment, cut=Cut.of(settings),
        )  # fmt: skip
    batch = observed(lm, batch, keep)
    yield (record := sampled_record(lm, batch, True, batch.ids.shape[1]))
    return batch, identical_answers(record)


def given_answers(examples: list[Example], loss_type: LossType, swapped: Array) -> list[str]:
    """The answers that `examples` bring along, prompt by prompt: one each to imitate, else two, the worse one first
    where `swapped` [P]; empty if not all of them have what `loss_type` needs."""
    answers = []
    for example, swap in zip(examples, swapped, strict=True):
        if example.chosen is None or (loss_type not in IMITATIONS and example.rejected is None):
            return []
        if loss_type in IMITATIONS or example.rejected is None:
            answers.append(example.chosen)
        else:
            answers += [example.rejected, example.chosen] if swap else [example.chosen, example.rejected]
    return answers


def label(
    batch: Batch, same: Array, state: State, plan: RunPlan
) -> Generator[Unlabelled, None, tuple[Scored, PairRows]]:
    """Phase 2: which answer of each pair is better; a pair of the `same` answers, bool [P], ties.

    Raises Halt if the user has left out every pair.
    """
    examples, update = batch.prompts.examples, batch.update
    count, swapped = len(examples), _swapped(plan, update, len(examples))
    is_given = bool(given_answers(examples, state.settings.loss_type, swapped))
    compared = len(batch.group) > count
    scored = score(batch, state) if state.task.gold or (rewards_of(state) and not is_given) else None
    state.batch = batch  # at hand for as long as the user is asked about it
    asked = np.flatnonzero(~same).tolist()
    while compared and state.settings.labeller == "user" and state.unlabelled(update, asked):
        yield Unlabelled()
    state.batch = None
    # A reward of weight 0 is tracked, too, but nothing learns from it, so it labels nothing.
    gold = {} if scored is None else {name: scored.gold[name] for name in state.task.gold}
    ties = same
    if not compared:
        second = np.zeros(count)
    elif state.settings.labeller == "user":
        second = np.full(count, np.nan)
        second[asked] = [_SECOND[state.choices[update, pair]] for pair in asked]
        if asked and np.isnan(second).all():
            state.choices = {place: choice for place, choice in state.choices.items() if place[0] != update}
            raise Halt(f"every pair of update {update} was left out; label at least one of them")
    elif scored is None or is_given:
        second = swapped.astype(float)
    else:
        judged = _summed(gold.values() or [scored.rewards])
        second = simulated_labels(judged, state.settings.label_noise, plan.seed, update)
        ties = same | np.isnan(second)
    return _labelled(batch, np.where(ties, np.nan, second), ties, gold)


def optimize_pairs(
    batch: Batch, pairs: PairRows, gradients: Callable[[Tensor], TrainedMinibatch], state: State, seed: int
) -> Iterator[Stepped | Searched | Notice]:
    """Phase 4: `optimize` on the pairs. Where none has a label no step is taken, and a notice says so."""
    if len(pairs.chosen):
        return optimize(batch, len(pairs.chosen), gradients, state, seed)
    text = (
        f"No pair of update {batch.update} has a better answer: no step was taken. For answers that differ, "
        "raise temperature; for more pairs, num_prompts."
    )
    return iter([Notice(update=batch.update, level="warning", text=text)])


def label_metrics(scored: Scored) -> dict[str, float]:
    """The share of ties, and how often the labels agree with the gold score, of the pairs that it tells apart.

    Empty where nothing is compared.
    """
    roles = np.array(scored.roles)
    chosen, rejected, tied = (roles == role for role in ("chosen", "rejected", "tie"))
    if not (rejected | tied).any():
        return {}
    metrics = {"frac_pairs_tied": float(tied.mean())}
    if scored.gold:
        gold = _summed(scored.gold.values())
        lead = _lead(gold[rejected], gold[chosen])
        told = lead[lead != 0]
        metrics |= {"label_accuracy": float((told > 0).mean())} if len(told) else {}
    return metrics


def simulated_labels(judged: Array, noise: float, seed: int, update: int) -> Array:
    """For each pair of neighbours in `judged` [2P], 1.0 if the labeller prefers the second answer, 0.0 if the first,
    NaN where both have the same score: [P].

    The second wins with probability σ((s₂ − s₁)/noise), as Bradley and Terry (1952) model it; without noise the better
    one wins.
    """
    lead = _lead(judged[::2], judged[1::2])
    draws = np.random.default_rng([seed, update, 5]).random(len(lead))
    wins = (lead > 0).astype(np.float64) if noise == 0 else _sigmoid(lead / noise)
    return np.where(lead == 0, np.nan, draws < wins)


def _summed(scores: Iterable[Array]) -> Array:
    """The sum of some scores of each answer, None counted as 0: float64 [N]."""
    return np.asarray(np.sum([np.nan_to_num(each).astype(np.float64) for each in scores], axis=0))


def _lead(first: Array, second: Array) -> Array:
    """By how much the second score is higher, exactly 0 where they are the same but for rounding: float64 [P]."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    return np.where(np.isclose(first, second, rtol=ROUNDING, atol=ROUNDING), 0.0, second - first)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


def _labelled(batch: Batch, second: Array, ties: Array, gold: dict[str, Array]) -> tuple[Scored, PairRows]:
    """The record and the pairs when the labeller prefers the first (0), the second (1) or neither (NaN): [P]."""
    answers = len(batch.group) // len(second)
    preferred = np.array([1 - second, second][:answers], dtype=np.float32).T.flatten()
    roles = {1.0: "chosen", 0.0: "rejected"}
    unlabelled = ["tie" if tied else "" for tied in ties for _ in range(answers)]
    chosen, rejected = (torch.from_numpy(np.flatnonzero(preferred == won)) for won in (1, 0))
    scored = Scored(
        update=batch.update,
        rewards=preferred,
        parts={"preferred": preferred},
        weights={"preferred": 1.0},
        gold=gold,
        roles=[roles.get(won, role) for won, role in zip(preferred.tolist(), unlabelled, strict=True)],
    )
    return scored, PairRows(chosen, rejected)


def _swapped(plan: RunPlan, update: int, count: int) -> Array:
    """Whose answers stand in turned order, so that the first is not always the better one: bool [P]."""
    return np.random.default_rng([plan.seed, update, 6]).random(count) < 0.5
