"""What formulas are made of: lines of styled text, and the numbers of one token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from rlplay.algorithms.equations import other_loss_terms
from rlplay.algorithms.settings import Settings
from rlplay.trace.records import Array
from rlplay.ui.format.numbers import plain, signed
from rlplay.ui.plot.picture import NOISE, number

Kind = Literal["plain", "won", "lost", "note", "old", "new"]
Line = list[tuple[str, Kind]]


@dataclass(frozen=True)
class Numbers:
    """What the records hold about one token; None where nothing was computed yet."""

    logprob: float | None = None
    advantage: float | None = None
    ratio: float | None = None
    """At the level of the settings: the token's own, or its answer's."""
    clip_state: int | None = None
    kl: float | None = None
    """The KL term as trained: already times w where the settings correct its bias."""
    beta: float | None = None
    """The KL's weight in that step, where it adapts."""
    dloss_dlogp: float | None = None
    dkl_dlogp: float | None = None
    weight: float | None = None
    """What the token's loss is multiplied with in the sum."""
    left_out: int | None = None
    """An index of `LEFT_OUT`."""
    change: float | None = None
    """ℓ − ℓ_old."""
    reward: float | None = None
    returned: float | None = None
    baseline: float | None = None
    pair: Pair | None = None
    answer: Mapping[str, Array] | None = None
    """The token's whole answer, by the names of `rlplay.algorithms.surrogates`; without it the token stands alone."""
    place: int = 0
    """Where the token is in its answer."""

    def values(self) -> Mapping[str, Array] | None:
        """The answer's quantities, None before all that a surrogate may take of the token is known."""
        if self.answer is not None or self.logprob is None or self.advantage is None or self.ratio is None:
            return self.answer
        alone = {"logprobs": self.logprob, "advantages": self.advantage, "ratio": self.ratio, "mask": True}
        alone["old_logprobs"] = self.logprob - (self.change or 0.0)
        return {name: np.atleast_1d(number) for name, number in alone.items()}


@dataclass(frozen=True)
class Pair:
    """Where a token's answer is compared: whether it is the chosen one, and the scores s of both answers.

    `baseline` is KTO's z, `margin` by how much a reward model should tell them apart. None for what the loss has not.
    """

    chosen: bool
    own: float | None = None
    other: float | None = None
    baseline: float | None = None
    margin: float = 0.0


def settled(settings: Mapping[str, Any]) -> Settings:
    """Recorded settings as such; those that this version does not know are passed over."""
    return msgspec.convert({name: settings[name] for name in Settings.__struct_fields__ if name in settings}, Settings)


def bounds(settings: Mapping[str, Any]) -> tuple[float, float]:
    """The band [1 − ε, 1 + ε_high] of the ratio."""
    low, high = settled(settings).clip_range
    return 1 - low, 1 + high


def digits(s: Settings) -> int:
    """Digits after the point that tell a ratio at the edge of its band from 1: 2, and more where the band is narrow."""
    narrow = min((side for side in s.clip_range if side > 0), default=1.0)
    return min(max(2, 1 - math.floor(math.log10(narrow))), 6)


def bracketed(value: float, places: int = 2) -> str:
    """A factor within a product: "0.93", "(−1.08)"."""
    return f"({stripped(value, places)})" if value < 0 else plain(value, places)


def stripped(value: float, places: int = 2) -> str:
    """With its sign, without the blank that a zero keeps for it."""
    return signed(value, places).strip()


def pull(value: float) -> str:
    """A derivative, small as it may be, with its sign: "+0.000318"."""
    return f"+{number(value)}" if value >= NOISE else number(value)


def only_these_pull(s: Settings) -> str:
    """What still acts where the surrogate does not: "only the KL term pulls"; empty if nothing does."""
    names = other_loss_terms(s)
    return f"only {' and '.join(names)} {'pulls' if len(names) == 1 else 'pull'}" if names else ""


def note(text: str) -> Line:
    """A line that explains."""
    return [(text, "note")]
