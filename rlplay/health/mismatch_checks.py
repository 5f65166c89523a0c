"""Checks of how the sampler's log-probabilities agree with training's: how far off, and whether it gets worse."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.health.finding import Evidence, Finding, NoTick, Points
from rlplay.trace.numbers import number

OWN, APART = 3e-3, 3e-2
"""k3 between sampling and training log-probabilities, nats per token, from which the sampler is at fault by itself.

The first is for a sampler within the trainer's program, the second for another program, with other kernels. In float32
rlplay's two passes agree to 1e-12, in bfloat16 to 2e-5 (bundled model, three seeds); with logits rounded to whole
numbers they are 5e-3 to 1e-2 apart. Runs that learn well with vLLM or SGLang in bfloat16 are at 1.6e-3 to 2e-3 (verl
issue 7749 and its users' logs); prime-rl issue 2671 calls 3e-2 large, verl's documentation warns from 0.1 on.
"""
GROWTH, GROWN = 4.0, 4e-3
"""How many times the mismatch of a run's first quarter its last quarter's is, and the least k3 that it then has.

Growth is the signal (prime-rl's docs/training.md; Precision-RL issue 10: from 1e-3 to 1). Measured with TRL on a tiny
model: with noise of 0.05 or 0.1 nats in the sampler's logits, β 0 or 0.05, four seeds of 30 updates each, the last
quarter had 0.0 to 0.4 times the first one's, because the policy became more certain. A sampler that never got the new
weights was at 1e-13 in update 1, 0.06 in update 2 and 1.5 to 3 from update 10 on.
"""
ENOUGH, CHANCE = 8, 2.5
"""Updates before anything can be said to grow, and the standard deviations by which the later ones are larger (Mann and
Kendall's test: of all pairs of updates, in how many is the later one larger)."""


class Measure(NamedTuple):
    """A number that says how far apart the two are, as a trainer logs it."""

    name: str
    words: str
    large: float
    grown: float


KL = "a KL of {} nats per token"
LOGGED = (
    Measure("rollout_corr/k3_kl", KL, APART, GROWN),
    Measure("rollout_corr/kl", KL, APART, GROWN),
    Measure("mismatch_kl/mean", KL, APART, GROWN),
    Measure("mismatch_kl/all/mean", KL, APART, GROWN),
    # Half its square is about the KL.
    Measure("sampling/sampling_logp_difference/mean", "{} nats on average", 0.25, 0.09),
    # verl's documentation: below 0.005 is usual, above 0.01 the precision is at fault.
    Measure("training/rollout_probs_diff_mean", "{} of probability on average", 0.05, 0.015),
)
"""verl's, prime-rl's and TRL's, by how directly they say it."""
_RECORDED = Measure("", KL, APART, GROWN)
_OWN_SAMPLER = Measure("", KL, OWN, OWN)


def mismatch(run: Evidence) -> Finding | None:
    """Sampling and training give the same tokens different probabilities, or ever more different ones."""
    measure, points = _measured(run)
    if not points:
        return None
    worst = min(x for _, x in points[-3:])
    grown = _grown(points, measure.grown)
    if worst < measure.large and grown is None:
        return None
    update = points[-1][0]
    evidence = (
        f"Before the first optimizer step of update {update}, the log-probabilities of the same tokens differ by "
        f"{measure.words.format(number(points[-1][1]))}."
    )
    if grown is not None:
        first, last = grown
        evidence += (
            f" In the first quarter of the {len(points)} updates it was {number(first)}, in the last {number(last)}."
        )
    return Finding(
        "mismatch",
        "Sampling and training disagree, ever more" if grown is not None else "Sampling and training disagree",
        evidence,
        _cause(run, points, grown),
        "Send the weights to the sampler after each update and compare one answer's log-probabilities in both."
        if grown is not None
        else "Sample with the weights, the precision and the temperature of training, or correct the ratio by "
        "importance sampling.",
        place=run.place("mismatch"),
    )


def _cause(run: Evidence, points: Points, grown: tuple[float, float] | None) -> str:
    if grown is None:
        return (
            "The answers come from another policy than the one that learns: older weights, a lower precision, another "
            "temperature or another kernel."
        )
    kl = dict(run.known("kl"))
    beside = [(x, kl[n]) for n, x in points[-ENOUGH:] if kl.get(n, 0.0) > 0]
    if len(beside) >= ENOUGH // 2 and all(x / 3 < other < 3 * x for x, other in beside):
        return (
            f"It is as large as the KL to the reference, {number(beside[-1][1])}, and grows with it: the sampler "
            "answers with the first weights. It never gets the new ones, or it loads the base model without adapter."
        )
    if grown[0] < grown[1] / 30:
        return (
            "At first both were equal: the sampler does not get the new weights, or not all of them (an adapter, a "
            "renamed layer). If it does, too large steps drive the policy to where rounding decides."
        )
    return (
        "The sampler falls behind: it answers with weights that are more and more updates old; or too large steps "
        "drive the policy to where rounding decides."
    )


def _measured(run: Evidence) -> tuple[Measure, Points]:
    """What is known of the mismatch: from the tokens on record, else as logged."""
    found = [(each.update, each.mismatch) for each in run.digests if each.mismatch is not None]
    if found:
        return _RECORDED if run.now.apart or run.source else _OWN_SAMPLER, found
    for measure in LOGGED:
        if points := run.known(measure.name):
            return measure, points
    return _RECORDED, []


def growth(run: Evidence) -> tuple[float, float] | None:
    """What the mismatch was in the first and in the last quarter of the updates; None if it has not grown."""
    measure, points = _measured(run)
    return _grown(points, measure.grown)


def _grown(points: Points, least: float) -> tuple[float, float] | None:
    """The medians of the first and the last quarter, if the last is much larger and the rise is no chance."""
    if len(points) < ENOUGH:
        return None
    y = np.array([value for _, value in points])
    quarter, count = len(y) // 4, len(y)
    first, last = float(np.median(y[:quarter])), float(np.median(y[-quarter:]))
    if last < max(least, GROWTH * first):
        return None
    later = np.sign(y[None, :] - y[:, None])[np.triu_indices(count, 1)].sum()
    return (first, last) if later > CHANCE * math.sqrt(count * (count - 1) * (2 * count + 5) / 18) else None


def agreement(run: Evidence) -> str:
    """How far apart sampling and training are, and whether that has grown."""
    measure, points = _measured(run)
    if not points:
        return NoTick("not recorded: the sampler's own log-probabilities")
    if run.source and not measure.name and not run.now.apart:
        return NoTick("the log-probabilities before the first step are the trainer's own, not the sampler's")
    off = measure.words.format(number(points[-1][1]))
    since = "" if len(points) < ENOUGH else f", not growing over {len(points)} updates"
    return f"{off} between sampling and training (from {number(measure.large)} on is wrong){since}"
