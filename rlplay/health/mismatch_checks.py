"""Checks of how the sampler's log-probabilities agree with training's: how far off, and whether it gets worse."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.health.finding import RECENT, Evidence, Finding, NoTick, Points
from rlplay.health.gap_shape import OPEN, GapShape
from rlplay.health.own_sampler import by_own_settings
from rlplay.health.trend import WINDOW
from rlplay.trace.numbers import number, percent

OWN, APART = 3e-3, 1e-2
"""k3 between sampling and training log-probabilities, nats per token, from which the sampler is at fault by itself.

The first is for a sampler within the trainer's program, the second for another program, with other kernels. In float32
rlplay's two passes agree to 1e-12, in bfloat16 to 2e-5 (bundled model, three seeds); with logits rounded to whole
numbers they are 5e-3 to 1e-2 apart. Runs that learn well with vLLM or SGLang in bfloat16 are at 1.6e-3 to 2e-3 (verl
issue 7749 and its users' logs), mixtures of experts included; prime-rl issue 2671 calls 3e-2 large, verl's
documentation warns from 0.1 on. A small policy that learns, sampled with weights of two bits (three seeds): 0.04 to 1;
with another expert for 1, 3 or 8 % of its tokens: 5e-3 to 0.1; with noise like bfloat16's: 2e-4 to 1.5e-3.
"""
NEAR = 0.4
"""The share of what is wrong from which a mismatch is not healthy for certain, and has no ✓."""
BEHIND = 3e-2
"""k3 from which a sampler that was equal at first is at fault: one that is an update behind, as intended, has 2e-3 to
4e-2 even where a run learns in 20 updates."""
BEGAN = 1 / 30
"""The share of the mismatch that the first update has at most if both began with the same weights."""
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
    Measure("sampling/sampling_logp_difference/mean", "{} nats on average", 0.12, 0.09),
    # verl's documentation: below 0.005 is usual, above 0.01 the precision is at fault.
    Measure("training/rollout_probs_diff_mean", "{} of probability on average", 0.03, 0.015),
)
"""verl's, prime-rl's and TRL's, by how directly they say it."""
_RECORDED = Measure("", KL, APART, GROWN)
_OWN_SAMPLER = Measure("", KL, OWN, OWN)


def mismatch(run: Evidence) -> Finding | None:
    """Sampling and training give the same tokens different probabilities, or ever more different ones."""
    return by_own_settings(run, _mismatch(run))


def _mismatch(run: Evidence) -> Finding | None:
    measure, points = measured(run)
    if not points:
        return None
    worst, grown = level(points), _grown(points, measure.grown)
    enough = max(measure.large, BEHIND * measure.large / APART) if equal_at_first(run) else measure.large
    few = None if grown is not None or equal_at_first(run) else in_few(run)
    if few is not None and few.cost >= COSTS:
        return _of_few(run, few)
    if worst < enough and grown is None:
        return None
    evidence = _evidence(measure, points, worst)
    if grown is not None:
        first, last = grown
        evidence += (
            f" In the first quarter of the {len(points)} updates it was {number(first)}, in the last {number(last)}."
        )
    elif (shape := _in_some_answers(run)) is not None:
        return _of_some(run, evidence, shape)
    return Finding(
        "mismatch",
        "Sampling and training disagree, ever more" if grown is not None else "Sampling and training disagree",
        evidence,
        _cause(run, points, grown),
        "Send the weights to the sampler after each update and compare one answer's log-probabilities in both."
        if grown is not None
        else f"Sample with the weights, the precision and the temperature of training{_or_correct(run)}.",
        place=run.place("mismatch"),
    )


def _or_correct(run: Evidence) -> str:
    """What else there is to do about it, or what the loss does already."""
    s = run.settings
    if s.old_logprobs_of == "sampler":
        return "; the loss already measures its ratio from the sampler, and bounds it"
    if s.importance_sampling_mode != "none":
        return f"; the loss is already corrected for it, within bounds ({s.importance_sampling_mode})"
    return ", or correct the ratio by importance sampling"


def _evidence(measure: Measure, points: Points, worst: float) -> str:
    if worst > level(points, RECENT):
        usual = measure.words.format(number(worst))
        return (
            f"Before the first optimizer step, the log-probabilities of the same tokens differ by {usual}, the median "
            f"of the last {min(len(points), WINDOW)} updates."
        )
    return (
        f"Before the first optimizer step of update {points[-1][0]}, the log-probabilities of the same tokens differ "
        f"by {measure.words.format(number(points[-1][1]))}."
    )


FEW, EQUAL, SEEN = 0.1, 0.05, 100
"""The share of tokens that carries four fifths of a mismatch which sits in few of them, and the nats that the middle
one is off by then; and how many tokens that takes, of those that are open.

With another expert for 1 to 8 % of the tokens: 1 to 6 % of them, and 0.003 to 0.023 nats. With weights of two bits,
older weights, another temperature or noise in every token: 8 to 50 %, and 0.07 nats or more where it is below 13 %.
"""
COSTS, WIDE, TOKENS = 4e-3, 0.5, 10
"""Half the mean square of the differences, over all tokens, from which so many that are so far off are a fault, nats.

It comes in bursts, so that the median over updates does not show it. Noise like bfloat16's has 2e-4 to 1.5e-3, and no
token off by half a nat.
"""


def shape_of(run: Evidence, count: int = WINDOW) -> GapShape | None:
    """The shape of the differences of the newest updates; None where the sampler's numbers are not on record."""
    found = [each.gap.shape for each in run.recent(count) if each.gap is not None and each.gap.shape is not None]
    return sum(found[1:], found[0]) if found else None


def in_few(run: Evidence) -> GapShape | None:
    """The shape of the differences if few tokens carry nearly all of them, and the others are as good as equal."""
    shape = shape_of(run)
    if shape is None or shape.open < SEEN or shape.wider(WIDE) < TOKENS:
        return None
    return shape if shape.carriers() <= FEW and shape.token(0.5) <= EQUAL else None


def _of_few(run: Evidence, shape: GapShape) -> Finding:
    return Finding(
        "mismatch",
        "Sampling and training disagree on a few tokens",
        f"Before the first optimizer step, {number(shape.wider(WIDE))} of {number(shape.open)} tokens have "
        f"log-probabilities that differ by more than {WIDE} nats, up to {number(shape.token(1.0), 2)}; half of them "
        f"differ by less than {number(max(shape.token(0.5), 1e-4), 2)}. {percent(shape.carriers())} of the tokens "
        f"carry four fifths of the difference (of those with −log p of {OPEN} or more in the last "
        f"{min(len(run.digests), WINDOW)} updates).",
        "The two agree but for single tokens: in a mixture of experts, the router sends these to other experts; or a "
        "kernel, a cache or a position is wrong for some of them. Temperature, precision and old weights would show in "
        "all tokens.",
        "Replay the sampler's routing in training, or compute the router in the same precision in both; for a dense "
        "model, compare the attention kernels and positions. Until then mask tokens whose ratio is far from 1.",
        place=run.place("mismatch"),
    )


NEAREST, TIMES = 0.06, 5.0
"""Nats per token that a quarter of the answers is off at most, and how many times that another quarter is at least,
where only some answers are wrong. In bfloat16 answers are off by 0.03 to 0.05, and by up to twice that."""


def _in_some_answers(run: Evidence) -> GapShape | None:
    shape = shape_of(run)
    if shape is None or shape.answers.sum() < 20 or shape.answer(0.25) > NEAREST:
        return None
    return shape if shape.answer(0.75) >= TIMES * NEAREST else None


def _of_some(run: Evidence, evidence: str, shape: GapShape) -> Finding:
    return Finding(
        "mismatch",
        "Sampling and training disagree on some answers",
        f"{evidence} A quarter of the answers is off by {number(shape.answer(0.25), 2)} nats per token or less, "
        f"another quarter by {number(shape.answer(0.75), 2)} or more.",
        "Some answers are scored as they were sampled and others are not: these were sampled after another context "
        "than training puts before them (a later turn that the template rewrites, another system prompt), or by a "
        "sampler that does not get the weights.",
        "Compare the prompt's tokens of such an answer in both, and whether all samplers get the weights.",
        place=run.place("mismatch"),
    )


def level(points: Points, count: int = 0) -> float:
    """The median of the newest values; of few or of many, whichever is larger.

    A policy that has become certain says nothing that a sampler could get wrong: the mismatch of late updates is small
    then, whatever is at fault.
    """
    return max(float(np.median([x for _, x in points[-each:]])) for each in ((count,) if count else (RECENT, WINDOW)))


def equal_at_first(run: Evidence) -> bool:
    """Whether sampling and training agreed when the run began, far better than since: they had the same weights."""
    _, points = measured(run)
    return len(points) >= ENOUGH and points[0][0] <= run.first + 1 and points[0][1] <= BEGAN * level(points)


def _cause(run: Evidence, points: Points, grown: tuple[float, float] | None) -> str:
    if grown is None:
        return "The answers come from another policy than the one that learns: " + (
            "older weights, most likely, as both agreed when the run began."
            if equal_at_first(run)
            else "a lower precision (quantised weights, an 8-bit cache), another kernel, another temperature, or "
            "older or other weights."
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


def measured(run: Evidence) -> tuple[Measure, Points]:
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
    measure, points = measured(run)
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
    measure, points = measured(run)
    if not points:
        return NoTick("not recorded: the sampler's own log-probabilities")
    if run.source and not measure.name and not run.now.apart:
        return NoTick("the log-probabilities before the first step are the trainer's own, not the sampler's")
    worst = level(points)
    off = measure.words.format(number(worst))
    if worst >= NEAR * measure.large:
        return NoTick(f"{off} between sampling and training: more than is usual, less than is wrong")
    if in_few(run) is not None:
        return NoTick(f"{off} between sampling and training, nearly all of it in few tokens")
    since = "" if len(points) < ENOUGH else f", not growing over {len(points)} updates"
    return f"{off} between sampling and training (from {number(measure.large)} on is wrong){since}"
