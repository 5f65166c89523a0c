"""The answer to who taught a token in an update that a trainer of TRL has just taken.

    Δθ = −lr·P∘m / (1 − β₁ᵗ) − lr·λ·θ,   m = β₁·m + (1 − β₁)·c·Σᵢ Dᵢ∇ℓᵢ

in each step, with c the factor that makes the gradient shorter. The sums go from the last step to the first: a first
moment pulls on the target in its own step and, by β₁ each time, in the later ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from torch import Tensor

from rlplay.record.trl.teachers.adam import Adam, Weights
from rlplay.record.trl.teachers.as_it_was import LentModel
from rlplay.record.trl.teachers.first_order import along, dot, pull
from rlplay.record.trl.teachers.kept import KeptStep, KeptUpdate, Pass
from rlplay.trace.records import Array
from rlplay.trace.teachers import Target, Taught, Teach

DECAY, BONUS, UNRECORDED = "weight decay", "entropy bonus", "answers that are not on record"


def taught(question: Teach, kept: KeptUpdate, adam: Adam, model: LentModel, go_on: Callable[[], None]) -> Taught:
    """Shares of all recorded tokens of the newest update; `model` is lent, and `go_on` raises if nobody waits."""
    after, sums = float(model.value(question.target)), _Sums(kept, adam, model, go_on)
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
        self._pulls: Weights = {}  # what each number of the first moments at hand adds to the target
        self._base: Weights = {}  # before the step at hand, of those weights that it or a later one moves
        self._squares: Weights = {}  # the second moments after it, where the optimizer has later ones

    def add(self, target: Target, step: KeptStep, passes: Sequence[Pass]) -> None:
        """Go on to the step before."""
        self._go_on()
        after = self._model.live | self._base
        self._base = self._base | {name: each.to(self._model.device) for name, each in step.weights.items()}
        self._model.give(self._base)
        self.value, slopes = self._model.gradient(target)
        for name in step.weights.keys() & slopes.keys():
            self._moved(step.settings[name], name, slopes[name], after[name])
        self._learned(step, passes)
        for name in self._pulls.keys() & step.weights.keys():
            self._pulls[name] = self._pulls[name] * step.settings[name]["beta1"]
        self._squares = self._squares | step.squares

    def _moved(self, setting: Mapping[str, float], name: str, slope: Tensor, after: Tensor) -> None:
        """How a weight's step moved the target."""
        before, squares = self._base[name], self._squares.get(name)
        self.first_order += dot(slope, after - before)
        self.decay -= setting["lr"] * setting["decay"] * dot(slope, before)
        own = pull(slope, self._adam.moment(name, "exp_avg_sq") if squares is None else squares.to(slope), setting)
        self._pulls[name] = own + self._pulls[name] if name in self._pulls else own

    def _learned(self, step: KeptStep, passes: Sequence[Pass]) -> None:
        """The shares of the step's tokens."""
        direction = {
            name: self._pulls[name] * (step.clip * (1 - step.settings[name]["beta1"]))
            for name in self._pulls.keys() & step.weights.keys()
        }
        again = [_again(one, self._model) for one in passes]
        slopes = along(direction, self._base, self._model.give, again, self._go_on)
        for one, (by_token, *by_entropy) in zip(passes, slopes, strict=True):
            for row, values in one.by_answer(_products(one.gradient, by_token)):
                self.shares[row] += values
            if one.by_entropy is not None:
                self.bonus += float(_products(one.by_entropy, by_entropy[0]).sum())

    def earlier(self) -> float:
        """What the first moments from before the update did."""
        moments = self._kept.moments
        return sum(dot(pulled, moments[name].to(pulled)) for name, pulled in self._pulls.items())


def _again(one: Pass, model: LentModel) -> Callable[[], list[Tensor]]:
    def passed() -> list[Tensor]:
        logprobs, entropies = one.again(model.forward)
        return [logprobs] if one.by_entropy is None or entropies is None else [logprobs, entropies]

    return passed


def _products(gradient: Tensor, slopes: Tensor) -> Array:
    found: Array = (gradient.double() * slopes.cpu().double()).numpy()
    return found
