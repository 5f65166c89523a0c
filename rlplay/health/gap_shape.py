"""How the log-probabilities of sampler and training differ within an update: in which tokens, answers and turns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.turns import earlier_turns

OPEN = 0.05
"""Nats of −log p, by the sampler or in training, from which a token says something: a certain one is always equal."""
FULL = 6
"""Open tokens of an answer from which it is compared with the others."""
_EDGES = np.geomspace(1e-4, 30, 45)
"""Nats; a size lies below the first edge, between two, or above the last."""
_MIDDLES = np.concatenate([[0.0], np.sqrt(_EDGES[:-1] * _EDGES[1:]), [30.0]])
_BOUND = 20.0
"""Nats beyond which a difference is as bad as it can be."""


@dataclass(frozen=True, eq=False)
class GapShape:
    """Counts and sums that add up over updates; a token's difference is training − sampler, nats."""

    tokens: Array  # open tokens by the size of their difference
    answers: Array  # answers by the root of the mean square of their open tokens' differences
    sums: Array  # over open tokens: 1, x, y, xx, xy and yy of x = log p of training and y = the difference
    first: Array  # of first turns: tokens, and the sum of k3
    later: Array  # of later turns

    def __add__(self, other: GapShape) -> GapShape:
        return GapShape(
            self.tokens + other.tokens, self.answers + other.answers, self.sums + other.sums, self.first + other.first,
            self.later + other.later,
        )  # fmt: skip

    @property
    def open(self) -> int:
        """The open tokens."""
        return int(self.tokens.sum())

    def token(self, share: float) -> float:
        """The size that this share of the open tokens does not reach, nats."""
        return _quantile(self.tokens, share)

    def answer(self, share: float) -> float:
        """The same of the answers."""
        return _quantile(self.answers, share)

    def wider(self, nats: float) -> int:
        """The open tokens that are off by so many nats or more."""
        return int(self.tokens[nats <= _MIDDLES].sum())

    @property
    def cost(self) -> float:
        """Half the mean of the differences' squares over all tokens, each up to 3 nats: about the KL."""
        return float(self.tokens @ np.minimum(_MIDDLES, 3.0) ** 2 / 2 / max(self.first[0] + self.later[0], 1))

    def carriers(self, share: float = 0.8) -> float:
        """The share of the open tokens that carries this share of the sum of squares; a token counts up to 3 nats."""
        weight = (self.tokens * np.minimum(_MIDDLES, 3.0) ** 2)[::-1].cumsum()
        if not weight[-1]:
            return 1.0
        bins, count = int(np.searchsorted(weight, share * weight[-1])), self.tokens[::-1]
        before = weight[bins - 1] if bins else 0.0
        inside = (share * weight[-1] - before) / (weight[bins] - before)
        return float(count[:bins].sum() + inside * count[bins]) / self.open

    def temperature(self) -> tuple[float, float]:
        """How many times as hot the sampler is by the line through (x, y), and the share of y's variance on it (r²)."""
        n, x, y, xx, xy, yy = self.sums
        if n < 2:
            return 1.0, 0.0
        vx, vxy, vy = xx / n - (x / n) ** 2, xy / n - x * y / n**2, yy / n - (y / n) ** 2
        if vx <= 0 or vy <= 0:
            return 1.0, 0.0
        return float(1 / max(1 - vxy / vx, 0.01)), float(vxy**2 / (vx * vy))


def _quantile(counts: Array, share: float) -> float:
    total = counts.cumsum()
    return float(_MIDDLES[int(np.searchsorted(total, share * total[-1]))]) if total[-1] else 0.0


def gap_shape(sampled: Sampled, ours: Array, theirs: Array) -> GapShape:
    """The shape of an update's differences.

    `ours` and `theirs` are log-probabilities of training and of the sampler, [T], NaN where they do not count.
    """
    off = np.clip(ours.astype(np.float64) - theirs, -_BOUND, _BOUND)
    known = np.isfinite(off)
    open_ = known & (np.minimum(ours, theirs) < -OPEN)
    answer = np.repeat(np.arange(len(sampled.offsets) - 1), np.diff(sampled.offsets))
    size, squares = (np.bincount(answer[open_], each, len(sampled.offsets) - 1) for each in (None, off[open_] ** 2))
    full = size >= FULL
    x, y = np.maximum(ours[open_], -_BOUND).astype(np.float64), off[open_]
    later = later_turns(sampled)
    k3 = np.where(known, np.expm1(off) - off, 0.0)
    return GapShape(
        tokens=_counted(np.abs(y)),
        answers=_counted(np.sqrt(squares[full] / size[full])),
        sums=np.array([len(x), x.sum(), y.sum(), x @ x, x @ y, y @ y]),
        first=np.array([(known & ~later).sum(), k3[~later].sum()]),
        later=np.array([(known & later).sum(), k3[later].sum()]),
    )


def _counted(sizes: Array) -> Array:
    return np.bincount(np.searchsorted(_EDGES, sizes), minlength=len(_MIDDLES))


def later_turns(sampled: Sampled) -> Array:
    """Whether a token belongs to a turn behind the first of its conversation, bool [T].

    That is one after somebody else's turn in the same answer, or any if its prompt holds a turn of the model's.
    """
    lengths, found = np.diff(sampled.offsets), np.zeros(len(sampled.mask), dtype=bool)
    spoken = [earlier_turns("".join(sampled.prompt_texts[a:b])) for a, b in pairwise(sampled.prompt_offsets.tolist())]
    rows = zip(sampled.offsets[:-1].tolist(), lengths.tolist(), sampled.group.tolist(), strict=True)
    for a, n, group in rows:
        mask = sampled.mask[a : a + n]
        if group < len(spoken) and spoken[group]:
            found[a : a + n] = True
        elif not mask.all():
            first = int(mask.argmax())  # what stands before the policy's first word is no turn of its answer
            found[a + first : a + n] = (mask[first:] == 0).cumsum() > 0
    return found
