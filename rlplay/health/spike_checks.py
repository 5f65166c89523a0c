"""Checks for single updates whose gradient is far larger than all others, with the token that it comes from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.health.broken_numbers import Pull
from rlplay.health.digest import Digest
from rlplay.health.finding import Evidence, Finding
from rlplay.health.trend import WINDOW
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

BESIDE, FEWEST = 50, 12
"""Updates that the last WINDOW are compared with, and how many it takes."""
TIMES, DEVIATIONS = 6.0, 6.0
"""How many times the upper quartile of the other norms, and how many robust deviations of their logarithm.

The deviation is 1.48 times the median distance from the median, at least 0.2. In 156 runs of rlplay and TRL (12 kinds,
up to 427 updates), every window: 5.3 times came with 4.2 deviations, and 15 times, of a policy that is nearly certain
and has a gradient in few updates, with 3.7. No healthy run had more than 4.2 deviations and 6 times at once.
"""
BEFORE = 5
"""Updates before it that a spike stands out from, too: where a loss falls quickly, the first gradients are the largest
(a reward model on 8 pairs: 12.6, 2.7, 0.8, 0.05, and 0.02 from then on)."""
UNUSUAL_ADVANTAGE, UNUSUAL_RATIO, RARE = 5.0, 3.0, 1e-4
"""What of a token is out of the ordinary: rewards scaled by their deviation give advantages within ±3 for 8 answers,
the policy is rarely 3 times as far from the sampler, and a probability of 1e-4 can only be sampled once in 10,000
tokens."""


class Spike(NamedTuple):
    """An update's gradient norm, and what it is held against."""

    update: int
    norm: float
    usual: float
    times: float


def spike(run: Evidence) -> Finding | None:
    """One update's gradient is many times the usual."""
    found = _largest(run)
    if found is None or found.times < TIMES or not _far(run, found):
        return None
    digest = next((each for each in run.digests if each.update == found.update), None)
    clipped = run.settings.max_grad_norm if run.stated("max_grad_norm") else 0.0
    bounded = f" max_grad_norm scales it to {number(clipped)}." if 0 < clipped < found.norm else ""
    cause, change = _why(digest)
    return Finding(
        "spike",
        "One update's gradient is many times the usual",
        f"The gradient norm of update {found.update} is {number(found.norm)}, {number(found.times)} times the upper "
        f"quartile of the others, {number(found.usual)}.{bounded}{_token(digest)}",
        cause,
        change,
        ("max_grad_norm", "learning_rate"),
        None if digest is None else digest.places.get("pulled"),
    )


def _norms(run: Evidence) -> list[tuple[int, float]]:
    return [(n, x) for n, x in run.known("grad_norm") if x > 0][-BESIDE:]


def _largest(run: Evidence) -> Spike | None:
    """The largest norm of the last WINDOW updates beside the others, and beside those before it."""
    points = _norms(run)
    if len(points) < FEWEST:
        return None
    place = max(range(max(BEFORE, len(points) - WINDOW), len(points)), key=lambda each: points[each][1])
    update, norm = points[place]
    others, before = [x for n, x in points if n != update], [x for _, x in points[:place]]
    usual = float(max(np.percentile(others, 75), np.percentile(before, 75)))
    return Spike(update, norm, usual, norm / usual)


def _far(run: Evidence, found: Spike) -> bool:
    others = np.log([x for n, x in _norms(run) if n != found.update])
    middle = float(np.median(others))
    deviation = max(1.4826 * float(np.median(np.abs(others - middle))), 0.2)
    return math.log(found.norm) - middle >= DEVIATIONS * deviation


def _token(digest: Digest | None) -> str:
    if digest is None or digest.pull is None:
        return ""
    pull, place = digest.pull, digest.places["pulled"]
    return (
        f" There “{visible(pull.text)}”, token {place.token + 1} of answer {place.answer + 1}, has the largest "
        f"derivative, {percent(pull.share)} of all: advantage {number(pull.advantage)}, probability "
        f"{number(math.exp(pull.logprob))}."
    )


def _why(digest: Digest | None) -> tuple[str, str]:
    """Cause and remedy by what is out of the ordinary with the token."""
    pull = None if digest is None else digest.pull
    if pull is None:
        return (
            "Not known: only the norm is on record. Usual causes are a rare token, an advantage inflated by a "
            "deviation near 0, or a batch of damaged answers.",
            "Record the answers, and look at this update's batch; until then lower max_grad_norm.",
        )
    return next(said for holds, said in _reasons(pull) if holds)


def _reasons(pull: Pull) -> list[tuple[bool, tuple[str, str]]]:
    return [
        (
            abs(pull.advantage) > UNUSUAL_ADVANTAGE,
            (
                f"Its advantage, {number(pull.advantage)}, is far out: a reward far beyond the others, or a deviation "
                "near 0 that the rewards are divided by.",
                "Bound the reward, or set scale_rewards to none; a lower max_grad_norm limits the damage.",
            ),
        ),
        (
            pull.ratio > UNUSUAL_RATIO,
            (
                f"Its ratio is {number(pull.ratio)}: the policy is far from the one that sampled it.",
                "Bound the ratio (delta), make fewer steps on a batch, or see whether sampling and training agree.",
            ),
        ),
        (
            math.exp(pull.logprob) < RARE,
            (
                "The token was nearly impossible, so its log-probability has a large gradient: damaged text, or a "
                "token that another program wrote.",
                "Look at the answer; leave out such answers, or lower max_grad_norm.",
            ),
        ),
        (
            True,
            (
                "No number of that token is out of the ordinary; the batch as a whole pulls in one direction.",
                "Look at this update's batch: its rewards, its lengths. A lower max_grad_norm limits the damage.",
            ),
        ),
    ]


def steady(run: Evidence) -> str:
    """The largest norm beside the others."""
    found = _largest(run)
    if found is None:
        return ""
    return (
        f"the largest of the last {min(len(_norms(run)), WINDOW)} updates is {number(found.times)} times the upper "
        f"quartile of the others ({number(TIMES, 2)} would show)"
    )
