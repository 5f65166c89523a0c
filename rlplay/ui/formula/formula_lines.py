"""The parts of formulas: lines of styled text, and the numbers of one token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rlplay.algorithms.equations import other_loss_terms
from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import NOISE, number
from rlplay.trace.records import Array, CorrectionRule
from rlplay.trace.update import Phase
from rlplay.ui.format.legend import later
from rlplay.ui.format.number_cells import plain, signed

Kind = Literal["plain", "won", "lost", "note", "old", "new"]
Line = list[tuple[str, Kind]]


@dataclass(frozen=True)
class TokenNumbers:
    """The recorded numbers of one token; None if not computed yet."""

    logprob: float | None = None
    advantage: float | None = None
    ratio: float | None = None
    """At the level of the settings: the token's own, or its answer's."""
    clip_state: int | None = None
    kl: float | None = None
    """The KL term as trained: already multiplied by w if the settings correct its bias."""
    distillation: float | None = None
    """The teacher's term as trained."""
    beta: float | None = None
    """The KL coefficient in that step, if it adapts."""
    dloss_dlogp: float | None = None
    dkl_dlogp: float | None = None
    weight: float | None = None
    """The weight of the token's loss in the sum."""
    left_out: int | None = None
    """An index of `LEFT_OUT`."""
    log_ratio: float | None = None
    """ℓ − ℓ_old."""
    correction: float | None = None
    """The factor by which the loss corrects for the sampler; None if it does not."""
    correction_rule: CorrectionRule | None = None
    sampler_ratio: float | None = None
    """How much likelier the policy found the token than its sampler did: ρ, where c is of each token."""
    reward: float | None = None
    returned: float | None = None
    baseline: float | None = None
    value: float | None = None
    """Q(s, a) just before its own step."""
    following: float | None = None
    """The value of what follows the move; 0 where the episode ends."""
    pair: PairScores | None = None
    answer: Mapping[str, Array] | None = None
    """The arrays of the whole answer, named as in `rlplay.algorithms.surrogates`; None: the token alone."""
    place: int = 0
    """The token's index in its answer."""
    reached: Phase = "sample"
    """The last phase of the update that has a record."""
    withheld: bool = False
    """Whether its credit is taken away, so that no formula gives the advantage."""

    def values(self) -> Mapping[str, Array] | None:
        """The answer's arrays; None before all inputs of a surrogate are known."""
        if self.answer is not None or self.logprob is None or self.advantage is None or self.ratio is None:
            return self.answer
        alone = {"logprobs": self.logprob, "advantages": self.advantage, "ratio": self.ratio, "mask": True}
        alone["old_logprobs"] = self.logprob - (self.log_ratio or 0.0)
        return {name: np.atleast_1d(number) for name, number in alone.items()}


@dataclass(frozen=True)
class PairScores:
    """The comparison of a token's answer: whether it is the chosen one, and the scores s of both answers.

    `baseline` is KTO's z; `margin` is the score gap that a reward model should reach; `lengths` are the tokens of both
    answers, `weight` is that of the pair. None if the loss does not use it. `minibatch` has numbers of all pairs of the
    optimizer step, where they are compared with each other, by the names of `pair_equations.SYMBOLS`, and this pair's
    are at `place`.
    """

    chosen: bool
    own: float | None = None
    other: float | None = None
    baseline: float | None = None
    margin: float = 0.0
    lengths: tuple[int, int] = (1, 1)
    weight: float | None = None
    minibatch: Mapping[str, Array] | None = None
    place: int = 0


def bounds(s: Settings) -> tuple[float, float]:
    """The band [1 − ε, 1 + ε_high] of the ratio."""
    low, high = s.clip_range
    return 1 - low, 1 + high


def has_band(s: Settings) -> bool:
    """Whether the surrogate clips the ratio at the edges of its band; no if the run does not name its algorithm."""
    return s.surrogate_row.band and s.axes_known


def digits(s: Settings) -> int:
    """Decimals that distinguish a ratio at the edge of its band from 1: 2, or more if the band is narrow."""
    narrow = min((side for side in s.clip_range if side > 0), default=1.0)
    return min(max(2, 1 - math.floor(math.log10(narrow))), 6)


def bracketed(value: float, places: int = 2) -> str:
    """A factor within a product: "0.93", "(−1.08)"."""
    return f"({stripped(value, places)})" if value < 0 else plain(value, places)


def stripped(value: float, places: int = 2) -> str:
    """With its sign, but without the blank before a zero."""
    return signed(value, places).strip()


def small_signed(value: float) -> str:
    """A number that may be small, with its sign: "+0.000318"; "·" if not finite."""
    if not math.isfinite(value):
        return "·"
    return f"+{number(value)}" if value >= NOISE else number(value)


def other_gradients(s: Settings) -> str:
    """The terms with a gradient where the surrogate has none: "only the KL term acts"; empty if there are none."""
    names = other_loss_terms(s)
    return f"only {' and '.join(names)} {'acts' if len(names) == 1 else 'act'}" if names else ""


def absent(numbers: TokenNumbers, phase: Phase, what: str = "") -> Line:
    """Why a number of a phase is not there: the phase has not ended, or the trainer did not record it."""
    return note(f"{what} {later(phase, numbers.reached) or 'has no value in this update'}".strip())


def note(text: str) -> Line:
    """A line that explains."""
    return [(text, "note")]
