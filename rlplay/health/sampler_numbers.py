"""Numbers of one update that say whether its answers came from the policy that learns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rlplay.health.gap_shape import GapShape, gap_shape, later_turns
from rlplay.trace.records import Array, Sampled, spans
from rlplay.trace.update import Update

WHOLE = 0.95
"""Share of the sampled tokens whose numbers must be known. An answer that a trainer leaves out because it was cut takes
its tokens along: those that are left ended, and an end that was unlikely is more of a surprise than the entropy says.
"""
FAR = 4.0
"""Nats by which a sampled token is less likely than the entropy says, from which it is out of the ordinary."""
EDGE = 0.02
"""Nats between two log-probabilities of a token from which their sign counts: less is rounding."""


@dataclass(frozen=True)
class Surprise:
    """Over the sampled tokens: how unlikely they were, beside how unlikely the policy's own samples are on average.

    If the policy sampled them, −log p has the mean H at each token, whatever came before. The differences of a sequence
    are then uncorrelated (a martingale's), so their sum has the variance of the sum of their squares.
    """

    tokens: int = 0
    surprise: float = 0.0  # sum of −log p, nats
    entropy: float = 0.0  # sum of H, nats
    squared: float = 0.0  # sum of (−log p − H)²
    far: float = 0.0  # sum of −log p − H where it is above FAR

    def __add__(self, other: Surprise) -> Surprise:
        return Surprise(
            self.tokens + other.tokens, self.surprise + other.surprise, self.entropy + other.entropy,
            self.squared + other.squared, self.far + other.far,
        )  # fmt: skip

    def __sub__(self, other: Surprise) -> Surprise:
        return Surprise(
            self.tokens - other.tokens, self.surprise - other.surprise, self.entropy - other.entropy,
            self.squared - other.squared, self.far - other.far,
        )  # fmt: skip

    @property
    def excess(self) -> float:
        """The mean of −log p − H, nats per token; positive: the answers are less likely than the policy's own."""
        return (self.surprise - self.entropy) / self.tokens if self.tokens else 0.0

    @property
    def error(self) -> float:
        """The standard error of `excess`.

        A policy that is nearly certain has most of its entropy in tokens too rare to be among a few hundred. All
        differences are then −H, and tiny. Where H is small, −log p has a variance of at least H, which this assumes.
        """
        return math.sqrt(max(self.squared, self.entropy)) / self.tokens if self.tokens else math.inf


@dataclass(frozen=True)
class SamplerGap:
    """The log-probabilities of another program that sampled, beside those of training before its first step.

    A ratio is exp(training − sampler). Its mean under a sampler that gives every token a chance is exactly 1, however
    far off it is; under one that leaves tokens out it is the policy's probability of the others.
    """

    tokens: int
    ratio: float  # mean
    ratio_error: float  # its standard error
    above: int  # tokens that are likelier under the sampler, by EDGE
    below: int  # tokens that are less likely
    largest: float  # log-probability by which a token is likelier under the sampler, the largest
    reference_kl: float | None  # k3 of sampler and reference, where that is on record
    trained_kl: float | None  # k3 of training and reference, on the same tokens
    shape: GapShape | None = None


def surprise(update: Update) -> Surprise | None:
    """The surprise of an update's sampled tokens; None where their entropy or log-probability is not on record."""
    sampled = update.sampled
    if sampled is None:
        return None
    own = sampled.mask == 1
    logp, entropy = sampled.old_logprobs[own].astype(np.float64), sampled.entropy[own].astype(np.float64)
    known = np.isfinite(logp) & np.isfinite(entropy)
    # A trainer that knows no entropies may have written zeros.
    if not known.any() or known.sum() < WHOLE * len(known) or not entropy[known].any():
        return None
    return _of(logp[known], entropy[known])


def later_surprise(update: Update) -> Surprise | None:
    """The same of the turns behind the first of each answer; None without any."""
    sampled = update.sampled
    if sampled is None or surprise(update) is None or not (later := later_turns(sampled)).any():
        return None
    own = (sampled.mask == 1) & later
    logp, entropy = sampled.old_logprobs[own].astype(np.float64), sampled.entropy[own].astype(np.float64)
    known = np.isfinite(logp) & np.isfinite(entropy)
    return _of(logp[known], entropy[known]) if known.any() else None


def _of(logp: Array, entropy: Array) -> Surprise:
    off = -logp - entropy
    return Surprise(len(off), float(-logp.sum()), float(entropy.sum()), float(off @ off), float(off[off > FAR].sum()))


def most_unlikely(sampled: Sampled) -> int | None:
    """The sampled token that is farthest beyond what the entropy lets expect, as an index of the flat arrays."""
    off = np.where(sampled.mask == 1, -sampled.old_logprobs - sampled.entropy, -np.inf)
    off = np.where(np.isfinite(off), off, -np.inf)
    return int(off.argmax()) if np.isfinite(off).any() else None


def sampler_gap(update: Update) -> SamplerGap | None:
    """How far off another program's log-probabilities are; None if none sampled, or it gave none."""
    sampled = update.sampled
    if sampled is None or sampled.sampling_logprobs is None:
        return None
    trained = _before_the_first_step(update)
    own = (sampled.mask == 1) & np.isfinite(sampled.sampling_logprobs) & np.isfinite(trained)
    if not own.any():
        return None
    theirs, ours = sampled.sampling_logprobs[own].astype(np.float64), trained[own].astype(np.float64)
    with np.errstate(over="ignore"):
        ratio = np.exp(ours - theirs)
    ahead = theirs - ours
    shape = gap_shape(sampled, np.where(own, trained, np.nan), np.where(own, sampled.sampling_logprobs, np.nan))
    reference = None if update.credited is None else update.credited.ref_logprobs
    frozen = None if reference is None else reference[own].astype(np.float64)
    return SamplerGap(
        tokens=len(theirs),
        ratio=float(ratio.mean()),
        ratio_error=float(ratio.std() / math.sqrt(len(ratio))),
        above=int((ahead > EDGE).sum()),
        below=int((ahead < -EDGE).sum()),
        largest=float(ahead.max()),
        reference_kl=None if frozen is None or not np.isfinite(frozen).all() else k3(theirs, frozen),
        trained_kl=None if frozen is None or not np.isfinite(frozen).all() else k3(ours, frozen),
        shape=shape,
    )


def _before_the_first_step(update: Update) -> Array:
    """Log-probabilities of training before anything has moved, float32 [T]: the old ones, else the first step's.

    Where the old ones are the sampler's own, NaN for those that the first step did not see.
    """
    sampled = update.sampled
    assert sampled is not None
    found = np.array(sampled.old_logprobs, dtype=np.float32)
    copied = sampled.sampling_logprobs is not None and np.array_equal(found, sampled.sampling_logprobs, equal_nan=True)
    if copied and update.steps:
        found[:] = np.nan
    if update.steps and update.steps[0].step == 0:
        first = update.steps[0]
        index = spans(sampled.offsets, first.rows)
        found[index] = np.where(np.isfinite(first.logprobs), first.logprobs, found[index])
    return found


def k3(one: Array, other: Array) -> float:
    """The mean of exp(other − one) − 1 − (other − one) over tokens that `one` sampled: KL(one ‖ other), nats."""
    off = other - one
    with np.errstate(over="ignore"):
        return float((np.expm1(off) - off).mean())


def against_reference(update: Update) -> tuple[float, float] | None:
    """The mean of log policy − log reference over the sampled tokens, and its standard error; None without both.

    Under the policy's own samples the mean at each token is a KL, which is never below 0.
    """
    sampled, credited = update.sampled, update.credited
    if sampled is None or credited is None or credited.ref_logprobs is None:
        return None
    off = (sampled.old_logprobs - credited.ref_logprobs)[sampled.mask == 1].astype(np.float64)
    off = off[np.isfinite(off)]
    if len(off) < 2 or not off.any():
        return None
    return float(off.mean()), float(math.sqrt(float(off @ off)) / len(off))
