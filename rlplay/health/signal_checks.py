"""Checks of whether rewards say anything: that answers earn differently, and that their groups do."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import takewhile

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.equations import other_loss_terms
from rlplay.health.counts import GOLD_COLUMNS
from rlplay.health.ending_checks import FEWEST, SEVERAL
from rlplay.health.finding import RECENT, Evidence, Finding, NoTick, Points
from rlplay.health.trend import ceiling, solved
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

EASY = 0.9
DEAD = 0.5
MOSTLY, GROUPS = 0.9, 16
"""Share of groups without signal from which the rest is too little: DAPO (arXiv:2503.14476) resamples to avoid it; and
the groups that it takes to see this: if 70 % of the groups are equal, 16 in a row are with a probability of 0.3 %."""


_PART = re.compile(r"rewards/.+/mean")
"""What TRL calls the mean of a part of the reward, before its weight."""
_NOTHING_TO_LEARN = "The reward cannot tell any two answers apart, so there is nothing to learn from."


def same(run: Evidence) -> Finding | None:
    """Every answer so far earned the same, or nearly every one the most there is."""
    if run.metrics_only:
        return _same_by_metrics(run)
    if run.now.weightless:
        return None
    values = {each.reward for each in run.digests if each.scored}
    if run.answers < FEWEST or not values or len([each for each in run.digests if each.scored]) < 2:
        return None
    if len(values) > 1 or None in values:
        return _easy(run)
    paid = next(iter(values)) or 0.0
    earned = number(paid)
    column, total = _contained(run)
    seen = ""
    if total:
        seen = f" {total} of them contain the value of their column “{visible(column)}”, and earned {earned} too."
    why, change = _one_reward(paid, total / run.answers if column else None)
    return Finding(
        "same reward",
        f"Every answer earned exactly {earned}",
        f"All {run.answers} answers of {len(run.digests)} updates earned {earned}.{seen}",
        f"{_NOTHING_TO_LEARN} {why}{_drawn_cold(run) if paid <= 0 else ''}",
        change,
        ("reward_weights",),
        run.example,
        run.examples,
    )


def _drawn_cold(run: Evidence) -> str:
    """That the answers are drawn below temperature 1, if they are."""
    at = run.settings.temperature
    return f" The answers are drawn at temperature {number(at)}; at 1 they differ more." if at < 1 else ""


def _one_reward(paid: float, right: float | None) -> tuple[str, str]:
    """Why all answers earn the same, and what to change; `right` is the share of them that contain the right answer.

    What is above 0 counts as paid.
    """
    read = "Read the reward function beside these answers"
    if paid > 0 and right is not None and right >= EASY:
        return "The answers are right: the model knows these prompts already.", "Take harder prompts."
    if paid > 0:
        wrong = ", those that do not contain that value too" if right else ""
        return (
            f"The reward pays every answer{wrong}: its test is always met, as by a pattern that matches an empty text, "
            "or it returns a default.",
            f"{read}, and try it on one that is plainly wrong.",
        )
    if right:
        return (
            "Often it compares things of different types, such as the text “30” with the number 30, or reads another "
            "column.",
            f"{read}, and try it on one that is plainly right.",
        )
    return (
        "No answer earned anything: the reward looks for something that none of them contains, such as a format, or "
        "the prompts are too hard.",
        f"{read}, and try it on one that is plainly right. If it is paid, pay for steps on the way too, train on "
        "examples first, or take easier prompts.",
    )


def _contained(run: Evidence) -> tuple[str, int]:
    """The column most likely to be the right answer, and how many answers contain its value.

    One that is named so, or else the one that most answers contain: a row's number is often in one by chance.
    """
    total: Counter[str] = Counter()
    for each in run.digests:
        total.update(each.contained)
    named = {name: count for name, count in total.items() if name.lower() in GOLD_COLUMNS}
    return max((named or total).items(), key=lambda item: item[1], default=("", 0))


def _easy(run: Evidence) -> Finding | None:
    """From the first update on, nearly every answer earned the most there is."""
    first = run.series("reward")[:2]
    flat = [x for _, x in run.series("frac_reward_zero_std")[:2]]
    best = max((each.best for each in run.digests if each.best is not None), default=None)
    worst = min((x for _, x in run.series("reward")), default=0.0)
    if best is None or best <= 0 or len(first) < 2 or worst < EASY * best:
        return None
    if not flat or min(flat) < DEAD:
        return None
    mean = sum(x for _, x in first) / len(first)
    return Finding(
        "same reward",
        "The reward is too easy to earn",
        f"Already in the first two updates the mean reward was {number(mean)} of {number(best)}, and in "
        f"{percent(sum(flat) / len(flat))} of the groups all answers earned the same.",
        "Nearly every answer earns the most there is, so there is hardly anything to compare.",
        "Reward something that the model does not do yet, or take harder prompts.",
        ("reward_weights",),
        run.example,
        run.examples,
    )


def _same_by_metrics(run: Evidence) -> Finding | None:
    """All means are equal, and no update has any spread."""
    means, spread = [x for _, x in run.known("reward")], [x for _, x in _spread(run)]
    if len(spread) < 2 or any(spread) or len({round(x, 9) for x in means}) != 1:
        return None
    if len(spread) * run.batch < FEWEST and len(spread) < SEVERAL:
        return None
    parts = {name: run.mean(name, len(means)) for name in sorted(run.history.names()) if _PART.fullmatch(name)}
    paid = [f"{visible(name)} {number(mean)}" for name, mean in parts.items() if mean]
    if paid and not means[-1]:
        return Finding(
            "same reward",
            "Every part of the reward has the weight 0",
            f"The mean reward was 0 in all {len(means)} updates, and no answer earned more or less, although parts of "
            f"it paid on average: {', '.join(paid)}.",
            "The reward is the sum of its parts, each times its weight; a sum of 0 throughout has weights of 0.",
            "Set reward_weights to 1, or leave it out.",
            ("reward_weights",),
        )
    return Finding(
        "same reward",
        f"Every answer earned exactly {number(means[-1])}",
        f"The mean reward was {number(means[-1])} in all {len(means)} updates, and no answer earned more or less.",
        _NOTHING_TO_LEARN,
        "Read the reward function beside some answers, and try it on one that is plainly right and on one that is "
        "plainly wrong.",
        ("reward_weights",),
    )


def _spread(run: Evidence) -> Points:
    """The spread of the rewards of each update: 0 where all are equal."""
    return run.known("reward_std") or (
        run.known("frac_reward_zero_std") and [(n, 1 - share) for n, share in run.known("frac_reward_zero_std")]
    )


def differs(run: Evidence) -> str:
    if run.metrics_only:
        spread = run.known("reward_std")
        if len(spread) < 2 or (len(spread) * run.batch < FEWEST and len(spread) < SEVERAL):
            return ""
        return f"the standard deviation of the rewards was {_span(spread)} in {len(spread)} updates" * any(
            x for _, x in spread
        )
    scored = [each for each in run.digests if each.scored]
    values = {each.reward for each in scored}
    if run.answers < FEWEST or len(scored) < 2 or (len(values) == 1 and None not in values):
        return ""
    apart = sum(each.reward is None for each in scored)
    return f"answers earned differently in {apart} of {len(scored)} updates, {run.answers} answers"


def _span(points: Points) -> str:
    low, high = min(x for _, x in points), max(x for _, x in points)
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def silent(run: Evidence) -> Finding | None:
    """The rewards say nothing: every advantage is 0, or most groups are flat and the baseline is their mean."""
    if ceiling(run) or solved(run):
        return None
    grouped = within_groups(run)
    window = max(RECENT, math.ceil(GROUPS / run.groups))
    groups, known = run.mean("frac_reward_zero_std", window), len(run.series("frac_reward_zero_std"))
    silent_groups = sum(each.groups for each in takewhile(lambda each: each.silent, reversed(run.digests)))
    every = silent_groups >= GROUPS or (len(run.digests) == 1 and run.now.silent)
    if not every and (not grouped or groups is None or known < window or groups < MOSTLY):
        return None
    mean = run.mean("reward", window)
    others = other_loss_terms(run.settings)
    rest = f" Only {' and '.join(others)} still {'acts' if len(others) == 1 else 'act'}." if others else ""
    last = "this update" if known == 1 else f"the last {min(known, window)} updates"
    share = "" if groups is None else f"In {last} all answers to a prompt earned the same in {percent(groups)} of the "
    share += "" if groups is None else "groups."
    return Finding(
        "no signal",
        "Most groups teach nothing" if not every else "Every advantage is 0",
        f"Every advantage is 0: update {run.last} can learn nothing from its rewards.{rest} {share}".rstrip()
        if every
        else f"{share} The mean reward is {number(mean or 0.0)}.",
        "A group whose answers all earn the same has nothing to compare. The prompts are too hard or too easy for this "
        f"policy, or its answers too much alike.{_drawn_cold(run)}"
        if grouped
        else "No answer earned more or less than its baseline.",
        "Take other prompts, easier or harder, or more num_generations."
        if grouped
        else "Take other prompts, easier or harder, or a reward that differs between answers.",
        ("num_generations",) if grouped else (),
        run.example,
        run.examples,
    )


def within_groups(run: Evidence) -> bool:
    """Whether each answer is compared with the others to its prompt, so that a group of equal rewards has no signal."""
    return BASELINES[run.settings.baseline].siblings


def signal(run: Evidence) -> str:
    if full := ceiling(run):
        return NoTick(full) if run.metrics_only else f"at its ceiling: {full}"
    if found := solved(run):
        return found
    if not within_groups(run):
        spread = run.known("reward_std")[-RECENT:]
        low = min((x for _, x in spread), default=0.0)
        return f"rewards differed in each of the last {RECENT} updates" if len(spread) == RECENT and low > 0 else ""
    window = max(RECENT, math.ceil(GROUPS / run.groups))
    groups = run.mean("frac_reward_zero_std", window)
    if groups is None or groups >= MOSTLY or len(run.known("frac_reward_zero_std")) < window:
        return ""
    return f"{percent(1 - groups)} of the groups of the last {window} updates have answers that earned differently"
