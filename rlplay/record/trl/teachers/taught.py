"""The answer to who taught a token in an update that a trainer of TRL has just taken.

    Δθ = −lr·P∘m / (1 − β₁ᵗ) − lr·λ·θ,   m = β₁·m + (1 − β₁)·c·Σᵢ Dᵢ∇ℓᵢ

in each step, with c the factor that makes the gradient shorter. The sums go from the last step to the first: a first
moment pulls on the target in its own step and, by β₁ each time, in the later ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from rlplay.first_order import Vector, best_difference, dot, gradient_taken, off_by, step_sizes
from rlplay.record.trl.teachers.adam import Adam
from rlplay.record.trl.teachers.as_it_was import LentModel
from rlplay.record.trl.teachers.difference import Difference, apart
from rlplay.record.trl.teachers.kept import KeptStep, KeptUpdate, Pass
from rlplay.trace.records import Array
from rlplay.trace.teachers import Target, Taught, Teach

DECAY, BONUS, UNRECORDED = "weight decay", "entropy bonus", "answers that are not on record"


def taught(question: Teach, kept: KeptUpdate, adam: Adam, model: LentModel, go_on: Callable[[], None]) -> Taught:
    """Shares of all recorded tokens of the newest update; `model` is lent, and `go_on` raises if nobody waits."""
    after, sums = float(model.value(question.target)), _Sums(kept, adam, model, go_on)
    if not math.isfinite(after):
        raise ValueError(f"its log-probability is {after} after the update, so the weights have diverged")
    for step, passes in reversed([*zip(kept.steps, kept.batch.passes, strict=True)]):
        sums.add(question.target, step, passes)
    shares = np.concatenate([sums.shares[row] for row in kept.batch.recorded])
    batch, whole = float(shares.sum()), float(sum(each.sum() for each in sums.shares))
    rest = {DECAY: sums.decay, BONUS: sums.bonus}
    if len(kept.batch.recorded) < len(sums.shares):
        rest[UNRECORDED] = whole - batch
    return Taught(
        question.target, question.update, question.by, temperature=model.temperature, steps=len(kept.steps),
        before=sums.value, after=after, shares=shares.astype(np.float32), batch=batch, earlier=sums.earlier(),
        rest={name: value for name, value in rest.items() if value}, first_order=sums.first_order,
    )  # fmt: skip


class _Sums:
    """What is added up from the last optimizer step to the first."""

    def __init__(self, kept: KeptUpdate, adam: Adam, model: LentModel, go_on: Callable[[], None]) -> None:
        self._kept, self._adam, self._model, self._go_on = kept, adam, model, go_on
        self.value = self.first_order = self.decay = self.bonus = 0.0
        """The target before the step at hand, and what the steps from there on did to it."""
        self.shares = [np.zeros(length) for length in kept.batch.lengths]
        self._pulls: Vector = {}  # what each number of the gradient at hand adds to the target
        self._base: Vector = {}  # before the step at hand, of those weights that it or a later one moves
        self._squares: Vector = {}  # the second moments after it, where the optimizer has later ones
        self._firsts: Vector = {}  # the first moments, too

    def add(self, target: Target, step: KeptStep, passes: Sequence[Pass]) -> None:
        """Go on to the step before."""
        self._go_on()
        after = self._model.live | self._base
        self._base = self._base | {name: each.to(self._model.device) for name, each in step.weights.items()}
        self._model.give(self._base)
        self.value, slopes = self._model.gradient(target)
        for name in step.weights.keys() & slopes.keys():
            self._moved(step.settings[name], name, slopes[name], after[name])
        self._learned(step, passes, slopes)
        for name in self._pulls.keys() & step.weights.keys():
            self._pulls[name] = self._pulls[name] * step.settings[name]["beta1"]
        self._squares, self._firsts = self._squares | step.squares, self._firsts | step.moments

    def _moved(self, setting: Mapping[str, float], name: str, slope: Tensor, after: Tensor) -> None:
        """How a weight's step moved the target."""
        before, squares = self._base[name], self._squares.get(name)
        self.first_order += dot({name: slope}, {name: after - before})
        self.decay -= setting["lr"] * setting["decay"] * dot({name: slope}, {name: before})
        second = self._adam.moment(name, "exp_avg_sq") if squares is None else squares.to(slope)
        betas = setting["beta1"], setting["beta2"]
        own = slope * step_sizes(second, setting["lr"], betas, setting["eps"], setting["count"])
        self._pulls[name] = own + self._pulls[name] if name in self._pulls else own

    def _learned(self, step: KeptStep, passes: Sequence[Pass], slopes: Vector) -> None:
        """The shares of the step's tokens; where its loss has no slope, they are 0."""
        direction, known = Vector(), 0.0
        for name in self._pulls.keys() & step.weights.keys():
            pulled, before = self._pulls[name], step.moments[name].to(self._model.device)
            after = self._firsts[name].to(before) if name in self._firsts else self._adam.moment(name, "exp_avg")
            known += dot({name: pulled}, {name: gradient_taken(before, after, step.settings[name]["beta1"])})
            direction[name] = pulled * step.clip
        passes = [one for one in passes if one.gradient.any() or one.by_entropy is not None]
        if not passes:
            return

        def measure(width: float) -> Difference:
            self._go_on()
            again = [_again(one, self._model) for one in passes]
            found = apart(direction, self._base, width, self._model.give, again)
            parts = [_of(one, each) for one, each in zip(passes, found.slopes, strict=True)]
            others = tuple(float(each.sum()) for _, *by_entropy in parts for each in by_entropy)
            total, sizes = (sum(float(of(tokens).sum()) for tokens, *_ in parts) for of in (np.asarray, np.abs))
            found.off = off_by(total + sum(others), known, sizes, others)
            return found

        guess = abs(dot(direction, slopes)) or 1.0
        best = best_difference(measure, torch.float32, guess)
        for one, each in zip(passes, best.slopes, strict=True):
            by_token, *by_entropy = _of(one, each)
            for row, values in one.by_answer(by_token):
                self.shares[row] += values
            self.bonus += sum(float(values.sum()) for values in by_entropy)

    def earlier(self) -> float:
        """What the first moments from before the update did."""
        moments = self._kept.steps[0].moments
        return sum(
            dot({name: pulled}, {name: moments[name].to(pulled)}) / (1 - float(self._adam.setting(name, "betas")[0]))
            for name, pulled in self._pulls.items()
        )


def _again(one: Pass, model: LentModel) -> Callable[[], list[Tensor]]:
    def passed() -> list[Tensor]:
        logprobs, entropies = one.again(model.exact)
        return [logprobs] if one.by_entropy is None or entropies is None else [logprobs, entropies]

    return passed


def _of(one: Pass, slopes: list[Tensor]) -> list[Array]:
    """What changes of a pass's log-probabilities, and of its entropies, do to its loss."""
    pulls = [one.gradient] if one.by_entropy is None else [one.gradient, one.by_entropy]
    return [(pull.double() * slope.cpu().double()).numpy() for pull, slope in zip(pulls, slopes, strict=True)]
