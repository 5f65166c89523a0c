"""The share of every token of an update in how far it moved a target.

Adam's step is linear in the gradients that it is made of, once P is what it was. A step's gradient acts at once and,
by the momentum, in the steps after it: v_s = k_s·P_s∘∇q(θ_s) + β₁·v_(s+1), with k = −lr·(1−β₁)/(1−β₁ᵗ), and token i has
the share c·Dᵢ·⟨∇ℓᵢ(θ_s), v_s⟩. What all of them together did is known from the optimizer's moments alone: ⟨c·g, v⟩.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.entropy_bonus import as_recorded
from rlplay.engine.state import State
from rlplay.engine.teachers.along import Along, Question, along
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.reading import has_others
from rlplay.engine.teachers.recorded_batch import unflattened
from rlplay.engine.teachers.steps_taken import StepTaken
from rlplay.engine.teachers.update_taken import UpdateTaken
from rlplay.first_order import Vector, dot
from rlplay.trace.records import Array


@dataclass
class Shares:
    """What the tokens of an update did to a target, float32 [T], their sum, and what its loss has besides, by name.

    `first` is v of the update's first step.
    """

    tokens: Array
    total: float
    others: dict[str, float]
    first: Vector


def directions(taken: UpdateTaken) -> Iterator[Vector]:
    """v of each step of the update, from the last to the first: what a gradient there did to the target within it."""
    later, beta1 = Vector(), taken.beta1
    for step in reversed(taken.steps):
        later = _before(later, step, beta1)
        for name, slope in step.slopes.items():
            later[name] = later[name] + slope if name in later else slope
        yield later


def directions_from(taken: UpdateTaken, later: Vector, steps: dict[str, int]) -> Iterator[Vector]:
    """The same for an update by whose momentum alone the target moved: `later` is v in a later update, which began when
    the optimizer had taken `steps` of each weight."""
    ended, beta1 = taken.ended, taken.beta1
    last = {n: v * beta1[n] ** (steps[n] - ended[n]) for n, v in later.items()}
    for step in reversed(taken.steps):
        last = _before(last, step, beta1)
        yield last


def _before(later: Vector, step: StepTaken, beta1: dict[str, float]) -> Vector:
    return {name: v * beta1[name] if name in step.pulled else v for name, v in later.items()}


def shares(taken: UpdateTaken, every: Iterable[Vector], past: Past) -> Shares:
    """The shares, given v of each step from the last to the first; the vectors of a step are let go after it.

    Raises ValueError, one line, for `Past.go_on`.
    """
    found, others, v = torch.zeros(taken.batch.ids.shape, dtype=torch.float64), dict[str, float](), Vector()
    for step, v in zip(reversed(taken.steps), every, strict=True):
        past.go_on()
        if part := _part(_question(step, v, taken), as_recorded(taken.state, step.record), taken):
            rows, change = part
            found.index_add_(0, rows, change.tokens)
            others |= {name: others.get(name, 0.0) + each for name, each in change.others.items()}
        step.let_go()
    return Shares(taken.batch.flat(found), float(found.sum()), others, v)


def _part(question: Question, state: State, taken: UpdateTaken) -> tuple[Tensor, Along] | None:
    """What a step's completions changed, and which they are; None if none did. `state` is that of the step."""
    if not question.guess or not len(question.rows):
        return None
    return question.rows, along(question, state, taken.batch)


def _question(step: StepTaken, v: Vector, taken: UpdateTaken) -> Question:
    """What is asked of a step: of all its completions, or of those that have a gradient where that is all."""
    record, sampled, longest = step.record, taken.record.sampled, taken.state.settings.max_grad_norm
    assert sampled is not None
    rows = torch.from_numpy(record.rows.astype(np.int64))
    pulls = unflattened(record.dloss_dlogp, record.rows, sampled).double()
    held = None if record.dkl_dlogp is None else unflattened(record.dkl_dlogp, record.rows, sampled).double()
    if not has_others(taken.state, taken.batch):
        loud = (pulls != 0).any(-1)
        rows, pulls, held = rows[loud], pulls[loud], None if held is None else held[loud]
    cut = min(1.0, longest / (record.metrics["grad_norm"] + 1e-6)) if longest else 1.0
    return Question(step.weights, v, rows, pulls, held, cut, dot(step.pulled, v), _guess(step, v, pulls * cut))


def _guess(step: StepTaken, v: Vector, pulls: Tensor) -> float:
    """By how much v changes the log-probability of a token, about: by the size of v times that of the token's gradient.

    That is the target's own or, if it is larger, the gradient's as if those of all tokens were orthogonal. 0 if v is 0.
    A step of learning rate 0 has no metric, and what it leaves in the momentum still counts in the later ones.
    """
    (own, whole), usual = step.sizes, math.sqrt(float(pulls.square().sum())) or 1.0
    if not own:
        return math.sqrt(dot(v, v) * dot(step.pulled, step.pulled)) / usual
    longer = math.sqrt(dot(v, v) / dot(step.slopes, step.slopes))
    return own * longer * max(own, whole / usual)
