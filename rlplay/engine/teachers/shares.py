"""The share of every token of an update in how far it moved a target.

Adam's step is linear in the gradients that it is made of, once P is what it was. A step's gradient acts at once and,
by the momentum, in the steps after it: v_s = k_s·P_s∘∇q(θ_s) + β₁·v_(s+1), with k = −lr·(1−β₁)/(1−β₁ᵗ), and token i has
the share c·Dᵢ·⟨∇ℓᵢ(θ_s), v_s⟩. What all of them together did is known from the optimizer's moments alone: ⟨c·g, v⟩.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlplay.engine.teachers.along import Question, along
from rlplay.engine.teachers.past import Past
from rlplay.engine.teachers.reading import has_others
from rlplay.engine.teachers.recorded_batch import unflattened
from rlplay.engine.teachers.steps_taken import StepTaken
from rlplay.engine.teachers.update_taken import UpdateTaken
from rlplay.first_order import Vector, dot
from rlplay.trace.records import Array


@dataclass
class Shares:
    """What the tokens of an update did to a target, float32 [T], their sum, and what its loss has besides, by name."""

    tokens: Array
    total: float
    others: dict[str, float]


def directions(taken: UpdateTaken) -> list[Vector]:
    """v of each step of the update, in order: what a gradient there did to the target, within the update."""
    found, later, beta1 = list[Vector](), Vector(), taken.beta1
    for step in reversed(taken.steps):
        later = _before(later, step, beta1)
        for name, slope in step.slopes.items():
            later[name] = later[name] + slope if name in later else slope
        found.insert(0, later)
    return found


def directions_from(taken: UpdateTaken, later: Vector, steps: dict[str, int]) -> list[Vector]:
    """The same for an update by whose momentum alone the target moved: `later` is v in a later update, which began when
    the optimizer had taken `steps` of each weight."""
    ended, beta1 = taken.ended, taken.beta1
    found, last = list[Vector](), {n: v * beta1[n] ** (steps[n] - ended[n]) for n, v in later.items()}
    for step in reversed(taken.steps):
        last = _before(last, step, beta1)
        found.insert(0, last)
    return found


def _before(later: Vector, step: StepTaken, beta1: dict[str, float]) -> Vector:
    return {name: v * beta1[name] if name in step.pulled else v for name, v in later.items()}


def shares(taken: UpdateTaken, every: list[Vector], past: Past) -> Shares:
    """The shares, given v of each step. Raises ValueError, one line, for `Past.go_on`."""
    found, others = torch.zeros(taken.batch.ids.shape, dtype=torch.float64), dict[str, float]()
    for step, v in zip(taken.steps, every, strict=True):
        past.go_on()
        question = _question(step, v, taken)
        if question.guess and len(question.rows):
            part = along(question, taken.state, taken.batch)
            found.index_add_(0, question.rows, part.tokens)
            others |= {name: others.get(name, 0.0) + change for name, change in part.others.items()}
    return Shares(taken.batch.flat(found), float(found.sum()), others)


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
