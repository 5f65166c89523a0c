"""Checks of a policy that loses itself: an entropy that rises for nothing, and a reward that was there and is gone."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlplay.health.finding import Evidence, Finding, NoTick, Points
from rlplay.health.trend import WINDOW, ceiling, trend
from rlplay.trace.numbers import number
from rlplay.trace.records import Array

EARLY = 5
"""Updates whose mean is an entropy's or a reward's level: at the start, at the best, and now."""
RISEN, NATS = 1.5, 0.2
"""How many times its level at the start an entropy must be, and how many nats above.

In 50 runs of rlplay and TRL that learn, every update from the tenth on, it was at most 1.09 times its start, but for
two whose reward rose with it (1.4 and 2.9 times). The check also asks for a rise beyond chance.
"""
LONG, LOST, SURE, GONE = 15, 0.6, 4.0, 0.3
"""Updates before a reward can have collapsed, the share of its gain that is then gone, and how many standard errors;
the share from which it is not kept, either."""
APART = 4.0
"""Deviations from its values around the best reward at which a metric has left them."""
STEADY = 10


class Drop(NamedTuple):
    """Median rewards at the start, at the best and now, and the update at which the best ended."""

    start: float
    best: float
    now: float
    at: int


def rising(run: Evidence) -> Finding | None:
    """Entropy rises, and the reward does not."""
    points = run.known("entropy")
    found, reward = trend(points, 2 * EARLY), trend(run.known("reward"), 2 * EARLY)
    if not run.finished or found is None or reward is None or not found.rises or reward.rises or ceiling(run):
        return None
    start = _level(points[:EARLY])
    now = _level(points[-EARLY:])
    if now < RISEN * start or now < start + NATS or _level(run.known("reward")[-EARLY:]) > reward.first + _noise(run):
        return None
    bonus = run.settings.entropy_coef if run.stated("entropy_coef") else 0.0
    falls = " The reward falls." if reward.falls else " The reward does not rise."
    cause, change, setting = (
        ("The entropy bonus pays for random answers more than the reward pays for good ones.",
         f"Lower entropy_coef, {number(bonus)} now.", "entropy_coef")
        if bonus > 0
        else ("Updates push probability away from what was sampled more than towards anything: a signal that is mostly "
              "noise, steps that are too large, or a sampler that is not the policy.",
              "Go back to an earlier update and lower learning_rate; if it rises again, see whether the rewards tell "
              "answers apart and whether sampling and training agree.", "learning_rate")
    )  # fmt: skip
    return Finding(
        "entropy rises",
        "The entropy rises, and the reward does not",
        f"Entropy rose from {number(start)} nats in the first {EARLY} updates to {number(now)} in the last "
        f"{EARLY}.{falls}",
        cause,
        change,
        (setting,),
        run.place("longest"),
    )


def _level(points: Points) -> float:
    return float(np.mean([x for _, x in points]))


def _noise(run: Evidence) -> float:
    """Two standard errors of a mean of EARLY rewards, by how they vary from one update to the next."""
    rewards = np.array([x for _, x in run.known("reward")])
    return 2 * float(np.median(np.abs(np.diff(rewards)))) * 1.05 / math.sqrt(EARLY) if len(rewards) > 1 else 0.0


def collapsed(run: Evidence) -> Finding | None:
    """The reward rose, and most of what it gained is gone."""
    found = drop(run)
    if found is None:
        return None
    name, words, update = _first_to_leave(run, found.at)
    cause, change, settings = _CAUSES.get(name, _CAUSES[""])
    return Finding(
        "collapse",
        "The run has collapsed",
        f"The reward rose from {number(found.start)} to {number(found.best)} (median of the best {EARLY} updates, up "
        f"to update {found.at}) and is {number(found.now)} in the last {EARLY}.{words}",
        cause,
        change.format(update=update or found.at),
        settings,
        run.place("longest"),
    )


def drop(run: Evidence) -> Drop | None:
    """The reward's fall from its best; None if it has not fallen beyond chance."""
    points = run.known("reward")
    if not run.finished or len(points) < LONG:
        return None
    values = np.array([x for _, x in points])
    levels = _levels(values)
    best = int(levels[:-EARLY].argmax())
    found = Drop(float(levels[: best + 1].min()), float(levels[best]), float(levels[-1]), points[best + EARLY - 1][0])
    error = _error(values)
    gained, lost = found.best - found.start, found.best - found.now
    fell = gained > max(SURE * error, 1e-6) and lost > max(LOST * gained, SURE * error)
    return found if fell and not _returned(run, found.at) else None


def _error(values: Array) -> float:
    """The standard error of a difference of two levels, by how the rewards vary from one update to the next."""
    return 1.05 * float(np.median(np.abs(np.diff(values)))) * math.sqrt(2 / EARLY)


def _levels(values: Array) -> Array:
    """The medians of EARLY rewards in a row: one update with a reward far out is no level."""
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(values, EARLY), axis=1))


def _returned(run: Evidence, best: int) -> bool:
    """Whether the policy went back towards its reference, as it does where beta was raised."""
    points = run.known("kl")
    then, now = [x for n, x in points if n <= best][-EARLY:], [x for _, x in points[-EARLY:]]
    return len(then) == EARLY and float(np.median(now)) < float(np.median(then)) / 2


_WATCHED = (
    "grad_norm", "rollout_corr/k3_kl", "rollout_corr/kl", "mismatch_kl/mean", "sampling/sampling_logp_difference/mean",
    "entropy", "kl", "completions/mean_length",
)  # fmt: skip
"""What may have moved first; of those that left in the same update, the first of these."""
_LOST_WAY = "Go back to update {update} and lower learning_rate, or raise beta."
_CAUSES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "grad_norm": (
        "A large gradient came first: one batch took the policy to where nothing it had learned holds.",
        "Go back to before update {update}, and lower max_grad_norm or learning_rate.",
        ("max_grad_norm", "learning_rate"),
    ),
    "mismatch": (
        "Sampling and training drifted apart first, so the policy was trained on answers that are not its own.",
        "Go back to before update {update}; sample with the weights and the precision of training, or correct the "
        "ratio.",
        (),
    ),
    "entropy": (
        "The entropy left its range first: the policy became random or certain before its reward fell.",
        _LOST_WAY,
        ("learning_rate", "beta"),
    ),
    "kl": (
        "The KL to the reference grew first: too little holds the policy near where it speaks well.",
        _LOST_WAY,
        ("beta", "learning_rate"),
    ),
    "completions/mean_length": (
        "The length of the answers left its range first: they ran into the limit, or shrank to nothing.",
        "Go back to before update {update}; read the longest and the shortest answers there.",
        ("max_completion_length",),
    ),
    "": (
        "No metric on record left its range before the reward fell: too large a step, or a reward that changed.",
        _LOST_WAY,
        ("learning_rate", "beta"),
    ),
}


def _first_to_leave(run: Evidence, best: int) -> tuple[str, str, int]:
    """The metric that first left its values around the best reward, with a sentence and the update; "" if none did."""
    left: list[tuple[int, int, str, str]] = []
    for place, name in enumerate(_WATCHED):
        points = run.known(name)
        usual = np.array([x for n, x in points if n <= best][-STEADY:])
        if len(usual) < EARLY:
            continue
        middle, spread = float(np.median(usual)), float(np.std(usual)) + 0.05 * abs(float(np.median(usual)))
        out = next(((n, x) for n, x in points if n > best and abs(x - middle) > APART * spread), None)
        if out is not None:
            words = f" Before, {name} was about {number(middle)}; in update {out[0]} it was {number(out[1])}."
            left.append((out[0], place, name, words))
    if not left:
        return "", "", 0
    update, _, name, words = min(left)
    mismatched = name.startswith(("rollout_corr", "mismatch", "sampling"))
    return "mismatch" if mismatched else name, words, update


def kept(run: Evidence) -> str:
    """How much of its gain the reward has kept; no ✓ if there was none, or a good part of it is gone."""
    points = run.known("reward")
    if len(points) < max(LONG, WINDOW):
        return ""
    values = np.array([x for _, x in points])
    levels, error = _levels(values), _error(values)
    best = int(levels.argmax())
    gained, lost = float(levels[best] - levels[: best + 1].min()), float(levels[best] - levels[-1])
    text = f"at its best {number(float(levels[best]))} over {EARLY} updates, now {number(float(levels[-1]))}"
    if gained <= max(SURE * error, 1e-6):
        return NoTick(f"{text}; it has gained nothing beyond chance that it could lose")
    return NoTick(text) if lost > max(GONE * gained, error) else text
