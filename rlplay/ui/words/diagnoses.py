"""Named diagnoses: problems of an update, with the numbers that show them and a remedy to try."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlplay.trace.history import History
from rlplay.trace.kinds import kind_of
from rlplay.trace.update import Update
from rlplay.ui.format.text import BY_KNOB, literal
from rlplay.ui.formula.parts import other_gradients, settled
from rlplay.ui.plot.picture import number
from rlplay.ui.words.trend import WINDOW, not_risen, risen


def warning(update: Update, history: History, settings: dict[str, Any]) -> str:
    """The most serious problem, in one or two sentences; empty if there is none."""
    return next((said for _, diagnosis, _ in _CHECKS if (said := diagnosis(update, history, settings))), "")


def progress(history: History) -> str:
    """The change of the reward, in one sentence; empty before there are two values."""
    moved = _over_time("reward")(Update(0), history)
    return f"Reward {moved}." if moved else ""


@dataclass(frozen=True)
class Finding:
    """The result of one check: `wrong` says what is wrong and what to try, else `evidence` shows that it is fine.

    Both may be empty. Only `wrong` names keys, between backticks.
    """

    name: str
    wrong: str
    evidence: str


def examine(update: Update, history: History, settings: dict[str, Any]) -> list[Finding]:
    """The results of all checks, problems first."""
    findings = [
        Finding(name, diagnosis(update, history, settings), evidence(update, history))
        for name, diagnosis, evidence in _CHECKS
    ]
    return sorted(findings, key=lambda finding: not finding.wrong)


def _not_a_number(update: Update, _history: History, _settings: dict[str, Any]) -> str:
    last = update.finished or (update.steps[-1] if update.steps else None)
    bad = sorted(name for name, value in last.metrics.items() if not math.isfinite(value)) if last is not None else []
    if not bad:
        return ""
    return (
        f"{literal(bad[0])} is not a number: the update is broken. "
        f"`z` goes back; a smaller learning_rate{BY_KNOB} often helps."
    )


def _stale_ratio(update: Update, _history: History, _settings: dict[str, Any]) -> str:
    if len(update.steps) != 1 or update.steps[0].step != 0:
        return ""
    off = float(np.abs(update.steps[0].importance_ratio - 1).max(initial=0.0))
    if off < 0.01:
        return ""
    return f"At the first optimizer step a ratio is {number(off)} away from 1: sampling and scoring disagree."


def _no_signal(update: Update, _history: History, settings: dict[str, Any]) -> str:
    if update.credited is None or update.credited.advantages.any():
        return ""
    if settings.get("loss_type", "policy_gradient") != "policy_gradient":  # a reward model leaves the policy alone
        return ""
    others = other_gradients(settled(settings))
    rest = f" {others[0].upper()}{others[1:]}." if others else ""
    return f"Every advantage is 0: this update can learn nothing from its rewards.{rest}"


def _gamed(update: Update, history: History, _settings: dict[str, Any]) -> str:
    if update.finished is None:
        return ""
    reward = history.series("reward")[1]
    for name in history.names():
        gold = history.series(name)[1] if name.startswith("gold/") else []
        if len(gold) > 2 and len(reward) > 2 and reward[-1] - reward[0] > 0.1 and gold[0] - gold[-1] > 0.1:
            return (
                f"Reward rose from {number(reward[0])} to {number(reward[-1])} while the gold score "
                f"{literal(name.split('/')[1])} fell from {number(gold[0])} to {number(gold[-1])}: "
                f"the reward is being gamed. Try a larger beta{BY_KNOB}."
            )
    return ""


def _collapse(update: Update, history: History, settings: dict[str, Any]) -> str:
    entropy, reward = history.series("entropy")[1], history.series("reward")[1]
    if update.finished is None or len(entropy) < 5 or not 0 <= entropy[-1] < 0.2 * entropy[0]:
        return ""
    if not len(reward) or reward[-1] > reward[0] + 0.05:
        return ""
    values = kind_of(settings) == "action values"
    remedy = "larger exploration_rate" if values else "smaller learning_rate"
    return (
        f"Entropy fell from {number(entropy[0])} to {number(entropy[-1])} nats and the reward did not rise: "
        f"the policy has stopped exploring. `z` goes back; try a {remedy}{BY_KNOB}."
    )


def _truncated(update: Update, _history: History, _settings: dict[str, Any]) -> str:
    sampled = update.sampled
    if sampled is None or not sampled.done or not len(sampled.truncated) or sampled.truncated.mean() <= 0.3:
        return ""
    longest = int(np.diff(sampled.offsets)[sampled.truncated == 1].max())
    return (
        f"{int(sampled.truncated.sum())} of {len(sampled.truncated)} answers were cut at {longest} tokens: "
        f"raise max_completion_length{BY_KNOB}."
    )


def _runaway(update: Update, _history: History, settings: dict[str, Any]) -> str:
    kl = update.finished.metrics.get("kl", 0.0) if update.finished is not None else 0.0
    if kl < 1:
        return ""
    return (
        f"KL to the reference is {number(kl)} nats per token: the policy is far from where it started. "
        f"beta is {number(float(settings.get('beta', 0)))}; a larger one{BY_KNOB} holds it back."
    )


def _finite(update: Update, _history: History) -> str:
    return "no NaN or inf" if update.finished is not None else ""


def _first_ratio(update: Update, _history: History) -> str:
    if not update.steps or update.steps[0].step != 0:
        return ""
    off = float(np.abs(update.steps[0].importance_ratio - 1).max(initial=0.0))
    return f"at most {number(off)} away from 1: sampling and scoring agree"


def _signal(update: Update, _history: History) -> str:
    if update.credited is None:
        return ""
    has = int(np.count_nonzero(update.credited.advantages))
    return f"{has:,} of {len(update.credited.advantages):,} tokens have a nonzero advantage" if has else ""


def _over_time(metric: str, unit: str = "") -> Callable[[Update, History], str]:
    def span(_update: Update, history: History) -> str:
        updates, values = history.series(metric)
        if len(values) < 2:
            return ""
        return f"from {number(values[0])} at update {updates[0]} to {number(values[-1])}{unit} at {updates[-1]}"

    return span


def _gold(update: Update, history: History) -> str:
    names = (name for name in history.names() if name.startswith("gold/"))
    return next((moved for name in names if (moved := _over_time(name)(update, history))), "")


def _cut(update: Update, _history: History) -> str:
    sampled = update.sampled
    if sampled is None or not sampled.done:
        return ""
    return f"{int(sampled.truncated.sum())} of {len(sampled.truncated)} were cut at the max length"


def _distance(update: Update, _history: History) -> str:
    kl = None if update.finished is None else update.finished.metrics.get("kl")
    return "" if kl is None else f"{number(kl)} nats per token"


_CHECKS = (
    ("Numbers", _not_a_number, _finite),
    ("Ratio at the first step", _stale_ratio, _first_ratio),
    ("Signal", _no_signal, _signal),
    ("Gold score", _gamed, _gold),
    ("Entropy", _collapse, _over_time("entropy", " nats")),
    ("Answers cut", _truncated, _cut),
    ("KL to the reference", _runaway, _distance),
    (f"Reward over {WINDOW} updates", not_risen, risen),
)
"""Each check by name, the most serious first, with its diagnosis and its evidence."""
