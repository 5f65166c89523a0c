"""Checks for single updates whose gradient is far larger than all others, with the token that it comes from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.health.broken_numbers import Pull
from rlplay.health.digest import Digest
from rlplay.health.finding import Evidence, Finding, NoTick, Points
from rlplay.health.policy_checks import FAR_AWAY
from rlplay.health.trend import WINDOW, ceiling, risen
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

BESIDE, FEWEST = 50, 12
"""Updates that the last WINDOW are compared with, and how many it takes."""
USUAL = 200 / 3
"""Percentile of the other norms that a spike is held against: one batch in four may have one."""
TIMES, DEVIATIONS, LEARNS = 8.0, 6.0, 20.0
"""How many times the usual norm, and how many robust deviations of the others' logarithm; how many times in a run that
learns all the same (RLOO on sums, which learned well, had 6.3 times in one of 30 updates, PPO on sums 16 times).

The deviation is 1.48 times the median distance from the median, at least 0.2. Against the upper quartile in 156 runs of
rlplay and TRL (12 kinds, up to 427 updates), every window: 5.3 times came with 4.2 deviations, and 15 times, of a
policy that is nearly certain and has a gradient in few updates, with 3.7. No healthy run had more than 4.2 deviations
and 6 times at once.
"""
BEFORE = 5
"""Updates before it that a spike stands out from, too: where a loss falls quickly, the first gradients are the largest
(a reward model on 8 pairs: 12.6, 2.7, 0.8, 0.05, and 0.02 from then on)."""
HARMFUL, LOOK, NEAR, LEAPT = 10.0, 200, 10, 3.0
"""How many times the others a norm is that may have done lasting harm; updates in which one is looked for, the
last updates whose median is compared with that of BEFORE before it, and how many times the KL then a KL has leapt."""
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
    far: bool
    """Whether it is DEVIATIONS away from them."""


def spike(run: Evidence) -> Finding | None:
    """One update's gradient is many times the usual."""
    found = _largest(run)
    if found is None or found.times < (LEARNS if risen(run) else TIMES) or not found.far or lasting(run):
        return None
    return _finding(run, found, "One update's gradient is many times the usual", "")


def lasting(run: Evidence) -> Finding | None:
    """One update's gradient was many times the usual, and the reward has not recovered since."""
    points = _norms(run)[-LOOK:]
    if len(points) < FEWEST or ceiling(run):
        return None
    least = HARMFUL * float(np.median([norm for _, norm in points]))
    for place in range(BEFORE, len(points)):
        if points[place][1] < least:
            continue
        found = _beside(points, place)
        if found.times >= HARMFUL and found.far and (harm := _harm(run, found.update)):
            return _finding(run, found, "One gradient was many times the usual, and the run has not recovered", harm)
    return None


def _harm(run: Evidence, update: int) -> str:
    """How the reward was before an update and is now, if it is no higher, or the KL if it is far; else empty."""
    rewards, kls = run.known("reward"), run.known("kl")
    before, now = _around(rewards, update)
    if min(len(before), len(now)) >= BEFORE and np.median(now) <= np.median(before) - _chance(run, before, now):
        return (
            f" In the {len(before)} updates before it the median reward was {number(float(np.median(before)))}, in the "
            f"last {len(now)} it is {number(float(np.median(now)))}."
        )
    before, now = _around(kls, update)
    if len(before) >= BEFORE and len(now) >= NEAR and np.median(now) >= max(FAR_AWAY, LEAPT * float(np.median(before))):
        return (
            f" In the {len(before)} updates before it the median KL to the reference was "
            f"{number(float(np.median(before)))}, in the last {len(now)} it is {number(float(np.median(now)))}."
        )
    return ""


def _chance(run: Evidence, before: list[float], now: list[float]) -> float:
    """By how much a median may be lower by chance where the reward has risen, and stays where it is; else 0."""
    spread = 1.05 * float(np.median(np.abs(np.diff([x for _, x in run.known("reward")]))))
    return 2 * 1.25 * spread * math.sqrt(1 / len(before) + 1 / len(now)) if risen(run) else 0.0


def _around(points: Points, update: int) -> tuple[list[float], list[float]]:
    """The values of BEFORE updates before one, and of the last up to NEAR after it."""
    return [x for n, x in points if n < update][-BEFORE:], [x for n, x in points if n > update][-NEAR:]


def _finding(run: Evidence, found: Spike, title: str, harm: str) -> Finding:
    digest = next((each for each in run.digests if each.update == found.update), None)
    clipped = run.settings.max_grad_norm if run.stated("max_grad_norm") else 0.0
    bounded = f" max_grad_norm scales it to {number(clipped)}." if 0 < clipped < found.norm else ""
    cause, change = _why(digest)
    back = f"Go back to before update {found.update}. " if harm else ""
    return Finding(
        "spike",
        title,
        f"The gradient norm of update {found.update} is {number(found.norm)}, {number(found.times)} times what two "
        f"thirds of the others stay below, {number(found.usual)}.{bounded}{harm}{_token(digest)}",
        cause,
        back + change,
        ("max_grad_norm", "learning_rate"),
        None if digest is None else digest.places.get("pulled"),
    )


def _norms(run: Evidence) -> Points:
    return [(n, x) for n, x in run.known("grad_norm")[-LOOK:] if x > 0]


def _largest(run: Evidence, of: int = WINDOW) -> Spike | None:
    """The largest norm of the last WINDOW updates beside the others, and beside those before it."""
    points = _norms(run)[-BESIDE:]
    if len(points) < FEWEST:
        return None
    return _beside(points, max(range(max(BEFORE, len(points) - of), len(points)), key=lambda each: points[each][1]))


def _beside(points: Points, place: int) -> Spike:
    """A norm beside up to BESIDE others around it, and beside those before it."""
    update, norm = points[place]
    before = [x for _, x in points[max(0, place - BESIDE + WINDOW) : place]]
    others = before + [x for _, x in points[place + 1 : place + BESIDE - len(before)]]
    usual = float(max(np.percentile(others, USUAL), np.percentile(before, USUAL)))
    logs = np.log(others)
    deviation = max(1.4826 * float(np.median(np.abs(logs - np.median(logs)))), 0.2)
    return Spike(update, norm, usual, norm / usual, math.log(norm) - float(np.median(logs)) >= DEVIATIONS * deviation)


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
    found, before = _largest(run), _largest(run, BESIDE)
    if found is None or before is None:
        return ""
    if before.times >= TIMES and before.far:
        return NoTick(f"in update {before.update} the norm was {number(before.times)} times the usual; since, steady")
    return (
        f"the largest of the last {min(len(_norms(run)), WINDOW)} updates is {number(found.times)} times what two "
        f"thirds of the others stay below ({number(LEARNS if risen(run) else TIMES, 2)} would show)"
    )
