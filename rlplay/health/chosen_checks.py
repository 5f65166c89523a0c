"""The check that chosen answers stay about as likely as they were when training began."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.algorithms.pair_losses import mixture
from rlplay.health.finding import NOT_USED, Evidence, Finding, NoTick
from rlplay.health.reference_checks import compares
from rlplay.trace.numbers import number

ENDS = 5
"""Values at the beginning and at the end that are compared."""
LOST = 2.0
"""Nats of log-probability that a chosen answer may lose: with 2 it is 7 times less likely.

Measured on tiny models: DPO and KTO on answers that a rule tells apart, 60 to 200 updates at learning rates of 0.001 to
0.01, gained 1.1 to lost 1.6 (7 kinds, 2 seeds each). DPO on pairs that differ in one token of 8 to 20 lost 10 to 37 in
5 runs, 3 ± 2 in one; from random weights, or at a rate of 0.001, some gained.
"""
SHARE = 0.2
OF_MARGIN = 0.3
"""Share of its own log-probability, or of the distance that the pairs gain, that must be lost besides. Answers of some
hundred tokens lose a few nats in any run."""


class _Loss(NamedTuple):
    """How many nats a chosen answer has lost, twice the standard error of that, and from what."""

    nats: float
    noise: float
    text: str


def displaced(run: Evidence) -> Finding | None:
    """Chosen answers become much less likely; rejected ones even more so."""
    lost = None if _meant(run) else _lost(run)
    if lost is None or lost.nats - lost.noise <= LOST or not _large(run, lost.nats):
        return None
    times = f"{number(math.exp(lost.nats), 2)} times" if lost.nats < 10 else "more than 20,000 times"
    return Finding(
        "displaced",
        "Chosen answers become less likely, too",
        f"A chosen answer has lost {number(lost.nats)} ± {number(lost.noise)} nats since training began, which makes "
        f"it {times} less likely: {lost.text}.",
        "A loss of pairs trains only the difference. Where both answers share most of their tokens, or the steps are "
        "large, both become less likely, and what neither says becomes likelier.",
        "Add imitation of the chosen answer (a loss with an SFT term), raise beta, or lower learning_rate; leave out "
        "pairs that hardly differ.",
        ("beta", "learning_rate"),
        run.place("longest"),
    )


def _meant(run: Evidence) -> bool:
    """Whether the loss lowers chosen answers on purpose."""
    return "apo_down" in mixture(run.settings)


def _lost(run: Evidence) -> _Loss | None:
    """From the implicit rewards, which compare the same answers with the reference; else from their log-probabilities.

    These are of other answers in each update, so that they tell less. None without enough values.
    """
    rewards, logps = run.known("rewards/chosen"), run.known("logps/chosen")
    by_reward = compares(run) and run.stated("beta") and run.settings.beta > 0
    values = np.array([x for _, x in (rewards if by_reward else logps)], dtype=np.float64)
    if len(values) < 2 * ENDS:
        return None
    end, spans = values[-ENDS:], [text for name in ("chosen", "rejected") if (text := _span(run, name))]
    if by_reward:
        nats, noise = (values[0] - end.mean()) / run.settings.beta, _noise(end) / run.settings.beta
        said = f"rewards/chosen is {number(float(end.mean()))} at beta {number(run.settings.beta)}"
        return _Loss(float(nats), noise, "; ".join([said, *spans]))
    begin = values[:ENDS]
    # Where the implicit reward has not fallen, it is the answers that are others.
    ahead = [x for _, x in rewards[-ENDS:]] if compares(run) else []
    nats = float(begin.mean() - end.mean()) if not ahead or np.mean(ahead) < 0 else 0.0
    return _Loss(nats, math.hypot(_noise(begin), _noise(end)), "; ".join(spans))


def _noise(values: np.ndarray) -> float:
    """Twice the standard error of their mean."""
    return 2 * float(values.std(ddof=1)) / math.sqrt(len(values))


def _span(run: Evidence, which: str) -> str:
    values = [x for _, x in run.known(f"logps/{which}")]
    if len(values) < 2 * ENDS:
        return ""
    begin, end = number(float(np.mean(values[:ENDS]))), number(float(np.mean(values[-ENDS:])))
    return f"logps/{which} went from {begin} to {end} in {len(values)} updates"


def _large(run: Evidence, nats: float) -> bool:
    """Whether so many nats are much for such answers, or beside what the pairs gain."""
    logps, margins = [x for _, x in run.known("logps/chosen")], [x for _, x in run.known("rewards/margins")]
    if len(logps) >= 2 * ENDS and nats >= SHARE * abs(float(np.mean(logps[:ENDS]))):
        return True
    gained = float(np.mean(margins[-ENDS:])) if run.stated("beta") and margins else 0.0
    return bool(gained) and nats * run.settings.beta >= OF_MARGIN * gained


def stays_likely(run: Evidence) -> str:
    if _meant(run):
        return NOT_USED
    lost = _lost(run)
    if lost is None:
        return ""
    if lost.nats + lost.noise < LOST:
        return f"{lost.text}; a loss of {number(LOST)} nats, to a seventh, would show"
    said = f"{number(-lost.nats)} ± {number(lost.noise)} nats since training began"
    return NoTick(f"{lost.text}: {said}. A loss of pairs may lower both, as it trains their difference")
