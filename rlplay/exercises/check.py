"""What an exercise is checked on: calls of the learner's function, each with the places that its numbers belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Array
from rlplay.worlds.world import World


@dataclass(frozen=True)
class Place:
    """What a number belongs to, in words, and the token that shows it; None where the batch has none."""

    label: str
    completion: int | None = None
    token: int = 0


@dataclass(frozen=True)
class Case:
    """One call of the function, with these `arguments`. Its result has this `shape`; the numbers `inside` count, one
    for each of the `places`. Without a shape, the result is a mapping from the labels of the places to numbers.

    `answers` are the right numbers, where the engine has them already. `made_up`: not of this batch.
    """

    arguments: Mapping[str, Any]
    places: Sequence[Place]
    shape: tuple[int, ...] | None = ()
    inside: Array | None = None  # bool, of that shape
    answers: Array | None = None
    made_up: bool = False


@dataclass(frozen=True)
class Material:
    """The batch at hand as arrays on the CPU: N answers of at most L tokens to G prompts, float64 and bool.

    What this update does not have is None.
    """

    settings: Settings
    group: Array  # int64 [N]
    mask: Array  # bool [N, L], True on sampled tokens
    logprobs: Array  # [N, L] at the last optimizer step that read the answer, else as sampled
    old_logprobs: Array  # [N, L]
    ref_logprobs: Array | None = None  # [N, L]
    rewards: Array | None = None  # [N]
    stream: Array | None = None  # [N, L] the rewards at each token
    advantages: Array | None = None  # [N, L]
    values: Array | None = None  # [N, L]
    texts: Sequence[str] = ()
    columns: Sequence[Mapping[str, Any]] = ()  # of each answer's prompt
    parts: Mapping[str, Array] = field(default_factory=dict)  # [N] each: what the reward functions gave
    pairs: tuple[Array, Array] | None = None  # int64 [P] each: the chosen and the rejected answers
    states: Sequence[Sequence[str]] = ()  # in a world: where each answer was before each sampled token
    world: World | None = None
    word: str = "token"  # what the policy samples

    def need(self, name: str, what: str) -> Any:
        """The quantity `name`. Raises ValueError, one line, if this update does not have `what` it is."""
        value = getattr(self, name)
        if value is None:
            raise ValueError(f"this update has no {what} yet")
        return value

    def of_answers(self) -> list[Place]:
        """A place for each answer: its last sampled token, where a reward arrives."""
        last = self.mask.shape[1] - 1 - self.mask[:, ::-1].argmax(1)
        return [Place(f"answer {i + 1}", i, int(token)) for i, token in enumerate(last)]

    def of_tokens(self, answer: int | None = None) -> list[Place]:
        """A place for each sampled token, in order; of one answer alone if it is given."""
        rows = range(len(self.mask)) if answer is None else (answer,)
        return [
            Place(f"answer {i + 1}, {self.word} {k + 1}", i, int(token))
            for i in rows
            for k, token in enumerate(np.flatnonzero(self.mask[i]))
        ]


@dataclass(frozen=True)
class Check:
    """How an exercise is checked: the learner defines `function`, and `reference(xp, **arguments)` gives the same.

    `cases` are of the batch; ValueError, one line, if it lacks something. `made_up` cases tell mistakes apart that some
    batches do not show. `unit` names what is compared. With `gradient_of`, the function returns a loss: compared are
    the loss, and how hard it pulls on each token of the argument of this name.
    """

    function: str
    unit: str
    cases: Callable[[Material], list[Case]]
    made_up: Callable[[], list[Case]]
    reference: Callable[..., Any]
    gradient_of: str = ""
