"""Checks of the learning rate: that it is not 0, nor so small that nothing can be learned with it."""

from __future__ import annotations

from itertools import pairwise

from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.policy_checks import VISIBLE
from rlplay.health.trend import WINDOW, learns
from rlplay.health.weight_checks import STEP, SURE
from rlplay.trace.numbers import number, percent

ALL_ZERO = 5
"""Updates with a learning rate of 0 after which no schedule explains it."""
LOW = 3e-8
"""Peak of a learning rate that leads nowhere: a thirtieth of 1e-6, which is usual where all weights of a large model
learn from rewards (verl and OpenRLHF take 5e-7 to 1e-6, TRL 1e-6); adapters and small models take far more."""
WEIGHT = 0.02
"""Standard deviation of the weights of a language model, as most are initialised."""


def no_rate(run: Evidence) -> Finding | None:
    """The learning rate is 0, or next to it, not only while it warms up."""
    return _zero(run) or warms_up_only(run) or _low(run)


def _zero(run: Evidence) -> Finding | None:
    rates = [rate for _, rate in run.series("learning_rate")]
    stated = run.stated("learning_rate") and run.settings.learning_rate == 0
    if not rates or any(rates) or not (stated or len(rates) >= ALL_ZERO):
        return None
    return Finding(
        "step too small",
        "The learning rate is 0",
        f"The learning rate of every update so far, {len(rates)} of them, was 0.",
        "With a learning rate of 0 no weight moves.",
        "Set learning_rate above 0.",
        ("learning_rate",),
    )


def warms_up_only(run: Evidence) -> Finding | None:
    """The rate has risen since the start, evenly, and is still next to nothing: the warm-up is too long."""
    points = run.known("learning_rate")
    (first, low), (last, high) = (points[0], points[-1]) if points else ((0, 0.0), (0, 0.0))
    even = all(earlier < later for (_, earlier), (_, later) in pairwise(points))
    moved = max((step for _, step in run.known("weights/step")), default=0.0)
    late = len(points) >= WINDOW and even and not _warms_up(run, [rate for _, rate in points])
    if not late or not 0 < high < LOW or moved >= STEP or learns(run, 2.0):
        return None
    aim = run.settings.learning_rate if run.stated("learning_rate") else 0.0
    pace = (high - low) / (last - first)
    there = f" At this pace it reaches {number(aim)} at about update {round(aim / pace):,}." if aim > high else ""
    return Finding(
        "step too small",
        "The learning rate only warms up",
        f"It has risen from {number(low, noise=0)} to {number(high, noise=0)} in {len(points)} updates.{there}",
        "The warm-up is longer than the run, or nearly: at such rates Adam changes nothing that the model says.",
        "Lower warmup_steps (or warmup_ratio) to a small part of the steps of the run.",
        ("learning_rate",),
        run.example,
    )


def _low(run: Evidence) -> Finding | None:
    rates = [rate for _, rate in run.known("learning_rate")]
    peak, moved = max(rates, default=0.0), max((step for _, step in run.known("weights/step")), default=0.0)
    if run.stated("learning_rate"):
        peak = max(peak, run.settings.learning_rate)
    if len(rates) < SURE or not 0 < peak < LOW or moved >= STEP or _warms_up(run, rates) or learns(run, 2.0):
        return None
    total = sum(rates)
    measured = f" No update moved the weights by more than {number(moved)} of their norm." if moved else ""
    return Finding(
        "step too small",
        "The learning rate is far too small",
        f"It was at most {number(max(rates))} in {len(rates)} updates.{measured}",
        f"Adam moves a weight by about the learning rate in a step. With one step each, these updates move it by "
        f"{number(total, noise=0)} at most, and weights are about {WEIGHT} in size: a change of "
        f"{number(100 * total / WEIGHT, 2, noise=0)} %, too small to change what the model says.",
        "Raise learning_rate: about 1e-6 is usual for all weights of a large model, 1e-5 to 2e-4 for an adapter. See "
        "that the schedule gets there.",
        ("learning_rate",),
        run.example,
    )


def _warms_up(run: Evidence, rates: list[float]) -> bool:
    """Whether the rate may rise yet to where nobody has said that it ends."""
    return not run.stated("learning_rate") and rates[-1] == max(rates) > rates[0] and len(rates) < 2 * WINDOW


def enough_rate(run: Evidence) -> str:
    rates = run.known("learning_rate")
    if not any(rate for _, rate in rates):
        return ""
    low, high = min(rate for _, rate in rates), max(rate for _, rate in rates)
    span = number(low, noise=0) if low == high else f"{number(low, noise=0)} to {number(high, noise=0)}"
    text = f"{span} in {len(rates)} {'update' if len(rates) == 1 else 'updates'}"
    moved = max((step for _, step in run.known("weights/step")), default=0.0)
    shifted = max((each.shift for each in run.recent(WINDOW) if each.shift is not None), default=0.0)
    if moved >= STEP:
        return f"{text}; one moves the weights by up to {number(moved)} of their norm"
    if shifted > VISIBLE:
        return f"{text}; one moves up to {percent(shifted)} of the probability of what was sampled"
    if high >= LOW and learns(run):
        return f"{text}, with which it learns"
    return NoTick(f"{text}; how far the weights move, or what is learned, would show that it is enough")
