"""The check that the reward rises, after all others, and what its other numbers suggest."""

from __future__ import annotations

import math

import numpy as np

from rlplay.health.finding import Evidence, Finding, NoTick
from rlplay.health.signal_checks import within_groups
from rlplay.health.trend import WINDOW, ceiling, solved, steady_trend, trend
from rlplay.trace.metrics import ROUNDING
from rlplay.trace.numbers import number, percent

SLOW = 5
USUAL_RATE = 1e-6
"""The least learning rate that trainers have as default for learning from rewards with all weights (TRL, verl)."""
ADAPTER = 0.3
"""Share of the weights that is trained below which it is an adapter or the like, whose usual rates are larger."""
PAID = 0.05
"""KL to the reference in nats per token from which its price may be what holds the reward."""
CLIPPED = 0.3


def flat(run: Evidence) -> Finding | None:
    """The reward does not rise."""
    found = trend(run.series("reward"), WINDOW)
    learns = run.settings.loss_type == "policy_gradient"
    if not run.finished or found is None or found.rises or not learns or ceiling(run) or solved(run):
        return None
    if not found.falls and _higher_than_before(run):
        return None
    steady = steady_trend(run.series("reward"), WINDOW)
    if steady is not None and steady.rises:
        return None
    how = "It falls" if found.falls else "Its trend is not distinguishable from flat"
    settings, remedies = _remedies(run, found.falls)
    return Finding(
        "flat",
        "The reward falls" if found.falls else "The reward does not rise",
        f"{how}: {found.text}.",
        "Not known: no other check explains it.",
        " ".join(remedies),
        tuple(settings),
        run.example,
    )


def _higher_than_before(run: Evidence) -> bool:
    """Whether the mean reward of the last WINDOW updates is above that of the WINDOW before them, beyond chance."""
    values = np.array([x for _, x in run.series("reward") if math.isfinite(x)])
    now, before = values[-WINDOW:], values[-2 * WINDOW : -WINDOW]
    if len(before) < SLOW:
        return False
    noise = math.sqrt(float(now.var(ddof=1)) / len(now) + float(before.var(ddof=1)) / len(before))
    return float(now.mean() - before.mean()) > 2 * noise + ROUNDING


def _remedies(run: Evidence, falls: bool) -> tuple[list[str], list[str]]:
    """What other metrics over the same updates suggest, the most certain cause first."""
    equal, clipped = run.mean("frac_reward_zero_std", WINDOW), run.mean("clip_ratio/region_mean", WINDOW)
    found: list[tuple[str, str]] = []
    peak = max((rate for _, rate in run.known("learning_rate")), default=math.inf)
    trained = min((x for _, x in run.known("weights/trained")), default=1.0)
    usual, least = "1e-6 and more is usual for all weights, 1e-5 to 2e-4 for an adapter", USUAL_RATE
    if trained < ADAPTER:
        usual, least = f"1e-5 to 2e-4 is usual where {percent(trained)} of the weights are trained, an adapter", 1e-5
    if not falls and 0 < peak < least:
        found.append((
            "learning_rate",
            f"The learning rate was at most {number(peak, noise=0)}; {usual}: raise it.",
        ))  # fmt: skip
    if falls:
        found.append(("learning_rate", "Go back to an earlier update and lower learning_rate."))
    if within_groups(run) and equal is not None and equal >= 0.5:
        found.append((
            "num_generations",
            f"{percent(equal)} of the groups earn equal rewards and teach nothing: take other prompts, easier or "
            "harder, or more num_generations.",
        ))  # fmt: skip
    if clipped is not None and clipped >= CLIPPED:
        found.append(("num_iterations", f"{percent(clipped)} of the tokens are clipped: lower num_iterations."))
    kl, beta = run.mean("kl", WINDOW), run.settings.beta
    if kl is not None and beta > 0 and kl >= PAID:
        found.append((
            "beta",
            f"β·KL is {number(beta * kl)}: where going further costs as much as it earns, the reward stays. Lower beta "
            "to let the policy go further.",
        ))  # fmt: skip
    batch = "prompts (gradient_accumulation_steps)" if "TRL" in run.source else "num_prompts"
    if not found:
        more = f"With more {batch} smaller rises show; a larger learning_rate makes larger ones."
        found.append(("num_prompts", more))
    return [setting for setting, _ in found], [said for _, said in found]


def risen(run: Evidence) -> str:
    full, found = ceiling(run) or solved(run), trend(run.known("reward"), WINDOW)
    if full and not run.metrics_only:
        return f"at its ceiling: {full}" if ceiling(run) else full
    if found is None:
        return NoTick(full)
    if found.rises:
        return found.text
    if not found.falls and _higher_than_before(run):
        before = min(WINDOW, len(run.known("reward")) - WINDOW)
        return f"higher on average in the last {WINDOW} updates than in the {before} before them, beyond chance"
    steady = steady_trend(run.known("reward"), WINDOW)
    if steady is not None and steady.rises:
        return f"without single updates that stand out: {steady.text}"
    return NoTick(full or f"neither rises nor falls beyond chance: {found.text}")
