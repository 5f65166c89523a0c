"""The questions "who taught it that?" and "without them?", and their answers: plain data, never recorded.

A target is the log-probability of tokens of an answer. Each token that an optimizer step learned from has a share in
how far the step moved it. The shares are of first order, through the step that was taken; see `Taught`.
"""

from __future__ import annotations

import msgspec
import numpy as np

from rlplay.trace.records import Array


class Target(msgspec.Struct, frozen=True):
    """What moved: q = Σ log π(answer_ids[p] | prompt_ids, answer_ids[:p]) over the `places` p, at a temperature.

    One token, also a candidate that was not sampled, has one place, the last of `answer_ids`. A whole answer has a
    place for every token that the policy sampled. The ids are those that the model reads, its chat template's included.
    """

    prompt_ids: list[int]
    answer_ids: list[int]
    places: list[int]


class Teach(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Which tokens moved the target in update `update`? Answered by `Taught`; changes nothing.

    `by` is the update whose tokens get shares: `update` itself, or an earlier one, whose gradients the optimizer's
    momentum still carried into it.
    """

    target: Target
    update: int
    by: int


class TeachCourse(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """How far did each update of the run move the target? Answered by `TaughtCourse` as often as more is known.

    It ends with the newest update whose weights are kept, or with the next command.
    """

    target: Target


class TakeAway(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """Where would the target be, had these tokens had no credit? Answered by `TakenAway`; changes nothing.

    `tokens` are places in the flat token arrays of update `update`, ascending. The update is taken once more: the same
    answers and random numbers, the same settings, and the credit of these tokens 0.
    """

    target: Target
    update: int
    tokens: list[int]


class Move(msgspec.Struct, frozen=True):
    """How far the updates after `since` up to `update` moved a target: what was measured, and of what it consists."""

    since: int
    update: int
    after: float
    """q after `update`, nats."""
    measured: float
    """q after `update` minus q after `since`."""
    batch: float
    """Of first order: the gradients of these updates."""
    earlier: float
    """Of first order: the momentum of earlier ones."""
    rest: float
    """Of first order: weight decay."""


class Taught(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """The answer to a `Teach`, at the temperature of the update's samples; all in nats of q.

    Adam moves the weights by Δθ = −lr·P∘[β₁m + (1−β₁)·c·Σᵢ Dᵢ∇ℓᵢ] / (1−β₁ᵗ), with Dᵢ = ∂loss/∂ℓᵢ of token i and
    P = 1/(√(v/(1−β₂ᵗ)) + ε). The share of token i is what its term adds to ⟨∇q, Δθ⟩, summed over the update's steps,
    each at its own weights; what a step leaves in the momentum counts in the later ones of the same update, too.
    """

    target: Target
    update: int
    by: int
    refused: str = ""  # why there is no answer, in one line; then the rest is empty
    temperature: float = 1.0
    steps: int = 0  # optimizer steps of the update
    before: float = 0.0  # q before the update
    after: float = 0.0  # q after it
    shares: Array = np.zeros(0, dtype=np.float32)  # float32 [T] of all tokens of update `by`; 0: no part in it
    batch: float = 0.0  # the sum of the shares of update `update`, whichever `by`
    earlier: float = 0.0  # what the momentum from before the update did
    earlier_by: list[tuple[int, int, float]] = []  # its parts: (since, update, sum) between kept weights, newest first
    rest: dict[str, float] = {}  # what is no token's: weight decay, entropy bonus, KL, value loss
    first_order: float = 0.0  # Σ ⟨∇q, Δθ⟩ over the steps, by the weights as they moved

    @property
    def measured(self) -> float:
        """How far q really moved."""
        return self.after - self.before

    @property
    def predicted(self) -> float:
        """The sum of all shares, of the momentum and of the rest."""
        return self.batch + self.earlier + sum(self.rest.values())


class TaughtCourse(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """The answer to a `TeachCourse`: the moves so far, oldest first."""

    target: Target
    refused: str = ""
    moves: list[Move] = []
    done: bool = False  # no further answer follows, because all is known or another command came


class TakenAway(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower):
    """The answer to a `TakeAway`: q before the update, after it, and after it without those tokens' credit."""

    target: Target
    update: int
    tokens: list[int]
    refused: str = ""
    before: float = 0.0
    after: float = 0.0
    without: float = 0.0


AnyTeaching = Teach | TeachCourse | TakeAway
AnyTeachingAnswer = Taught | TaughtCourse | TakenAway


def refuse_teaching(question: AnyTeaching, reason: str) -> AnyTeachingAnswer:
    """The answer to a question that cannot be answered; `reason` is one line."""
    match question:
        case Teach():
            return Taught(question.target, question.update, question.by, refused=reason)
        case TeachCourse():
            return TaughtCourse(question.target, refused=reason, done=True)
        case TakeAway():
            return TakenAway(question.target, question.update, question.tokens, refused=reason)
