"""Per-token statistics of a policy beside a sampler that is not quite it, and beside its teacher.

Differences are the policy's log-probability minus the other's, as in TRL (`sampling/importance_sampling_ratio`) and
prime-rl (`log_importance_ratio`, `mismatch_kl`): + where the policy finds the token likelier than the other does.
"""

from __future__ import annotations

import numpy as np

from rlplay.trace.lens import Lens, known
from rlplay.trace.records import Array, spans
from rlplay.trace.update import Update


def sampler_difference(update: Update) -> Array | None:
    """ℓ − ℓˢ, float32 [T]: the policy's log-probability before the update minus the sampler's; NaN where none is.

    Where the ratio starts from the sampler's (old_logprobs_of=sampler), the policy's are those of the first optimizer
    step that saw the token, which is later than the first step of all for some.
    """
    sampled = update.sampled
    if sampled is None or sampled.sampling_logprobs is None:
        return None
    policy = sampled.old_logprobs
    if np.array_equal(policy, sampled.sampling_logprobs, equal_nan=True):
        policy = np.full_like(policy, np.nan)
        for step in reversed(update.steps):
            policy[spans(sampled.offsets, step.rows)] = step.logprobs
    gap = np.where(sampled.mask == 1, policy - sampled.sampling_logprobs, np.nan)
    return known(gap.astype(np.float32))


def staleness(update: Update) -> Array | None:
    """By how many updates the weights that sampled an answer were older than the policy, int64 [N]."""
    sampled = update.sampled
    if sampled is None or sampled.versions is None:
        return None
    return np.asarray(update.number - 1 - sampled.versions.astype(np.int64))


def _ratio(update: Update) -> Array | None:
    gap = sampler_difference(update)
    with np.errstate(over="ignore"):
        return None if gap is None else np.exp(gap)


def _mismatch(update: Update) -> Array | None:
    gap = sampler_difference(update)
    with np.errstate(over="ignore"):
        return None if gap is None else np.asarray(np.expm1(gap) - gap)


def _stale(update: Update) -> Array | None:
    old = staleness(update)
    if old is None or update.sampled is None:
        return None
    return np.repeat(old, np.diff(update.sampled.offsets)).astype(np.float32)


def _correction(update: Update) -> Array | None:
    return None if update.credited is None else known(update.credited.correction)


def _from_teacher(update: Update) -> Array | None:
    if update.credited is None or update.credited.teacher_logprobs is None or update.sampled is None:
        return None
    return known(np.asarray(update.sampled.old_logprobs - update.credited.teacher_logprobs))


OF_OTHERS = (
    Lens(
        "sampler_difference", "Difference to the sampler", "ℓ − ℓˢ", "old logprob − sampling logprob",
        "nats", "sample", "diverging", -1.0, 1.0,
        "How much likelier (+) or less likely (−) the policy found this token than the sampler that wrote it. 0 "
        "everywhere if the sampler is the policy. Precision, older weights and a cut of the sampler's choices make it "
        "differ.",
        sampler_difference, special=True,
    ),
    Lens(
        "sampler_ratio", "Ratio to the sampler", "p/pˢ", "exp(old logprob − sampling logprob)",
        "", "sample", "diverging", 0.0, 2.0,
        "How many times as likely the policy found this token as the sampler that wrote it. Over all tokens its mean "
        "is 1 where the sampler could have written anything. A correction multiplies the loss by it, within bounds.",
        _ratio, special=True,
    ),
    Lens(
        "mismatch_kl", "Mismatch KL", "k3ˢ", "p/pˢ − 1 − (ℓ − ℓˢ), k3 estimate with the sampler's log-probabilities",
        "nats", "sample", "sequential", 0.0, 0.5,
        "How far the policy is from the sampler at this token, never below 0. Its mean over the sampled tokens "
        "estimates the KL from the sampler to the policy.",
        _mismatch, finest="low", special=True,
    ),
    Lens(
        "staleness", "Age of the weights", "Δu", "updates of the policy − updates of the weights that sampled",
        "updates", "sample", "sequential", 0.0, 8.0,
        "How many updates older than the policy the weights were that wrote this answer. 0: the policy's own.",
        _stale, special=True,
    ),
    Lens(
        "correction", "Correction", "c", "the ratio to the sampler of the token or its answer, within bounds; 0 beyond "
        "them if the setting masks",
        "", "credit", "diverging", 0.0, 2.0,
        "The factor of this token's loss that corrects for the sampler. 1 changes nothing; 0 leaves the token out.",
        _correction, special=True,
    ),
    Lens(
        "teacher_difference", "Difference to the teacher", "ℓ − ℓᵗ", "old logprob − teacher logprob",
        "nats", "credit", "diverging", -2.0, 2.0,
        "How much likelier (+) or less likely (−) the policy found this token than its teacher does. On tokens that "
        "the policy sampled, the mean estimates the reverse KL to the teacher.",
        _from_teacher, special=True,
    ),
    Lens(
        "distillation", "Divergence from the teacher", "D", "the divergence from the teacher at this token, as trained",
        "nats", "update", "sequential", 0.0, 1.0,
        "How far the policy was from its teacher at this place, by the divergence that the loss has: a signal for "
        "every token, also where no reward arrives.",
        lambda u: known(u.latest_step("distillation")), finest="low", special=True,
    ),
)  # fmt: skip
