"""Numbers of one update that say which tokens its loss trains: somebody else's, or not the end of an answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from rlplay.health.sampler_numbers import Surprise
from rlplay.trace.records import Array, Sampled
from rlplay.trace.turns import turns_of_others
from rlplay.trace.update import Update

LAST = 3
"""Tokens at the end of an answer among which the one that ends it is: some templates write a line break behind it."""


@dataclass(frozen=True)
class TrainedTokens:
    """What the loss of an update covers."""

    written: int  # tokens that an environment wrote, by the mask
    pulled: int  # of these, with a derivative that is not 0; also if no derivative is on record
    token: int | None  # the first of them
    unmasked: Surprise  # tokens in the turn of somebody else that the mask gives to the policy
    stranger: int | None  # the first of these
    ends: Counter[int]  # the ids of the last tokens of each answer in the loss, by how many answers have each
    early: int  # answers without an end that are shorter than three quarters of the longest


def trained_tokens(update: Update) -> TrainedTokens | None:
    """Which tokens the loss covers; None before anything is sampled."""
    sampled = update.sampled
    if sampled is None:
        return None
    derivative = update.latest_step("dloss_dlogp")
    written = sampled.mask == 0
    hard = np.zeros(len(written)) if derivative is None else np.nan_to_num(derivative)
    pulled = written & (hard != 0)
    others = _others(sampled)
    lengths = np.diff(sampled.offsets)
    cut = sampled.truncated == 1
    return TrainedTokens(
        written=int(written.sum()) if derivative is not None else 0,
        pulled=int(pulled.sum()),
        token=int(pulled.argmax()) if pulled.any() else None,
        unmasked=_surprise(sampled, others),
        stranger=int(others[0]) if len(others) else None,
        ends=_ends(sampled),
        early=int((cut & (lengths < 0.75 * lengths.max(initial=0))).sum()),
    )


def _others(sampled: Sampled) -> Array:
    """The tokens with mask 1 that stand in a turn of somebody else, by the marks in the text: int64, ascending."""
    found: list[Array] = []
    for a, b in zip(sampled.offsets[:-1].tolist(), sampled.offsets[1:].tolist(), strict=True):
        for turn in turns_of_others(sampled.texts[a:b]):
            inside = np.arange(a + turn.start, a + turn.stop)
            found.append(inside[sampled.mask[inside] == 1])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _surprise(sampled: Sampled, tokens: Array) -> Surprise:
    logp, entropy = sampled.old_logprobs[tokens].astype(np.float64), sampled.entropy[tokens].astype(np.float64)
    known = np.isfinite(logp) & np.isfinite(entropy)
    off = -logp[known] - entropy[known]
    return Surprise(len(off), float(-logp[known].sum()), float(entropy[known].sum()), float(off @ off))


def _ends(sampled: Sampled) -> Counter[int]:
    found: Counter[int] = Counter()
    for a, b in zip(sampled.offsets[:-1].tolist(), sampled.offsets[1:].tolist(), strict=True):
        own = sampled.token_ids[a:b][sampled.mask[a:b] == 1]
        found.update(set(own[-LAST:].tolist()))
    return Counter(dict(found.most_common(256)))
