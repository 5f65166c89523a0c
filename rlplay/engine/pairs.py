"""Pairs of answers and who says which is better: phases 1 and 2 of an update that learns from preferences.

Pairs come from the user's file, or the reference writes two answers to each prompt. Labels come from the file, from
the user, or from a simulated labeller who sees the hidden gold score and errs as `label_noise` says. All of it is a
function of (seed, update) and, where the user labels, of the choices made.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.batch import Batch, Prompts, candidates, sampled_record
from rlplay.engine.given import observed, written
from rlplay.engine.reward_model import rewards_of
from rlplay.engine.sample import Sampling, draw_prompts, sample
from rlplay.engine.score import score
from rlplay.engine.state import Halt, Plan, State
from rlplay.tasks.task import Example
from rlplay.trace.records import Array, Sampled, Scored

_SECOND = {"a": 0.0, "b": 1.0, "skip": np.nan}
"""Whether a choice is for the second answer of a pair; NaN for neither."""


@dataclass(frozen=True)
class Unlabelled:
    """A moment of waiting: the user has pairs of this update left to label. It comes again until none is left."""


@dataclass(frozen=True)
class Pairs:
    """Which completions of a batch are compared: int64 [P] each, pair by pair; `rejected` [0] for demonstrations."""

    chosen: Tensor
    rejected: Tensor

    def rows(self, which: Tensor) -> Tensor:
        """The completions of the pairs `which`, chosen ones first."""
        return torch.cat([self.chosen[which], self.rejected[which] if len(self.rejected) else self.rejected])


def draw_pairs(state: State, plan: Plan) -> Generator[Sampling | Sampled, None, Batch]:
    """Phase 1: `num_prompts` prompts with two answers each, or with one where it is only imitated."""
    settings, lm, update = state.settings, state.lm, state.update + 1
    examples = draw_prompts(plan.train, settings.num_prompts, plan.seed, update)
    prompts, keep = Prompts.of(lm, examples), candidates(lm, settings)
    if texts := given_answers(examples, settings.loss_type, _swapped(plan, update, len(examples))):
        group = torch.arange(len(examples), device=lm.device).repeat_interleave(len(texts) // len(examples))
        batch = written(lm, prompts, group, texts, settings.max_completion_length, update)
    else:
        # The reference is frozen: what is compared does not depend on what was learned from earlier pairs.
        batch = yield from sample(
            replace(lm, policy=lm.reference), prompts, generations=2, length=settings.max_completion_length,
            temperature=settings.temperature, keep=keep, seed=plan.seed, update=update,
            environment=state.task.environment,
        )  # fmt: skip
    batch = observed(lm, batch, keep)
    yield sampled_record(lm, batch, True, batch.ids.shape[1])
    return batch


def given_answers(examples: list[Example], loss_type: str, swapped: Array) -> list[str]:
    """The answers that `examples` bring along, prompt by prompt: one each to imitate, else two, the worse one first
    where `swapped` [P]; empty if not all of them have what `loss_type` needs."""
    answers = []
    for example, swap in zip(examples, swapped, strict=True):
        if example.chosen is None or (loss_type != "sft" and example.rejected is None):
            return []
        if loss_type == "sft" or example.rejected is None:
            answers.append(example.chosen)
        else:
            answers += [example.rejected, example.chosen] if swap else [example.chosen, example.rejected]
    return answers


def label(batch: Batch, state: State, plan: Plan) -> Generator[Unlabelled, None, tuple[Scored, Pairs]]:
    """Phase 2: which answer of each pair is better. Raises Halt if the user has left out every pair."""
    examples, update = batch.prompts.examples, batch.update
    count, swapped = len(examples), _swapped(plan, update, len(examples))
    is_given = bool(given_answers(examples, state.settings.loss_type, swapped))
    compared = len(batch.group) > count
    scored = score(batch, state) if state.task.gold or (rewards_of(state) and not is_given) else None
    state.batch = batch  # at hand for as long as the user is asked about it
    while compared and state.settings.labeller == "user" and state.unlabelled(update, count):
        yield Unlabelled()
    state.batch = None
    gold = {} if scored is None else scored.gold
    if not compared:
        second = np.zeros(count)
    elif state.settings.labeller == "user":
        second = np.array([_SECOND[state.choices[update, pair]] for pair in range(count)])
        if np.isnan(second).all():
            state.choices = {place: choice for place, choice in state.choices.items() if place[0] != update}
            raise Halt(f"every pair of update {update} was left out; label at least one of them")
    elif scored is None or is_given:
        second = swapped.astype(float)
    else:
        judged = np.sum([np.nan_to_num(scores) for scores in gold.values() or [scored.rewards]], axis=0)
        second = simulated_labels(judged, state.settings.label_noise, plan.seed, update)
    return _labelled(batch, second, gold)


def label_metrics(scored: Scored) -> dict[str, float]:
    """How often the labels agree with the gold score, of the pairs that it tells apart; empty if there are none."""
    roles = np.array(scored.roles)
    chosen, rejected = roles == "chosen", roles == "rejected"
    if not scored.gold or not rejected.any():
        return {}
    gold = np.sum([np.nan_to_num(scores) for scores in scored.gold.values()], axis=0)
    lead = gold[chosen] - gold[rejected]
    told = lead != 0
    return {"label_accuracy": float((lead[told] > 0).mean())} if told.any() else {}


def simulated_labels(judged: Array, noise: float, seed: int, update: int) -> Array:
    """For each pair of neighbours in `judged` [2P], 1.0 if the labeller prefers the second answer, else 0.0: [P].

    The second wins with probability σ((s₂ − s₁)/noise), as Bradley and Terry (1952) model it; without noise the better
    one wins, and a coin decides a tie.
    """
    lead = (judged[1::2] - judged[::2]).astype(np.float64)
    draws = np.random.default_rng([seed, update, 5]).random(len(lead))
    wins = np.where(lead > 0, 1.0, np.where(lead < 0, 0.0, 0.5)) if noise == 0 else _sigmoid(lead / noise)
    return np.asarray(draws < wins, dtype=np.float64)


def _sigmoid(x: Array) -> Array:
    return np.asarray(0.5 * (1 + np.tanh(x / 2)))


def _labelled(batch: Batch, second: Array, gold: dict[str, Array]) -> tuple[Scored, Pairs]:
    """The record and the pairs when the labeller prefers the first (0), the second (1) or neither (NaN): [P]."""
    answers = len(batch.group) // len(second)
    preferred = np.array([1 - second, second][:answers], dtype=np.float32).T.flatten()
    roles = {1.0: "chosen", 0.0: "rejected"}
    device = batch.ids.device
    chosen, rejected = (torch.from_numpy(np.flatnonzero(preferred == won)).to(device) for won in (1, 0))
    scored = Scored(
        update=batch.update,
        rewards=np.nan_to_num(preferred),
        parts={"preferred": preferred},
        weights={"preferred": 1.0},
        gold=gold,
        roles=[roles.get(won, "") for won in preferred.tolist()],
    )
    return scored, Pairs(chosen, rejected)


def _swapped(plan: Plan, update: int, count: int) -> Array:
    """Whose answers stand in turned order, so that the first is not always the better one: bool [P]."""
    return np.random.default_rng([plan.seed, update, 6]).random(count) < 0.5
