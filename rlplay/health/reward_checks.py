"""Checks of what the reward pays for: nothing, length, the wrong thing, or the prompts of training alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile

from rlplay.algorithms.baselines import BASELINES
from rlplay.algorithms.equations import other_loss_terms
from rlplay.health.counts import GOLD_COLUMNS, WinCount
from rlplay.health.finding import RECENT, Evidence, Finding
from rlplay.health.setup_checks import FEWEST
from rlplay.health.trend import ceiling, trend
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

DECIDED, PAIRS = 0.98, 100
"""Share of pairs in which length alone tells who earned more, and how many pairs that takes.

A reward that counts characters gives 1.00 in characters and 0.99 in tokens. Rewards that do not look at length reached
0.976 in 123 pairs (helpful answers, seed 1) and usually stay below 0.93. Where a right answer needs longer working they
reach 0.995, but there a column of the prompt tells even more, and the check stays silent.
"""
UPSIDE_DOWN, COMPARISONS = 0.1, 20
EASY = 0.9
DEAD = 0.5
FELL = 0.2
"""Share of its start by which a score must have fallen, besides that the fall is beyond chance."""


def same(run: Evidence) -> Finding | None:
    """Every answer so far earned the same, or nearly every one the most there is."""
    values = {each.reward for each in run.digests if each.scored}
    if run.answers < FEWEST or not values or len([each for each in run.digests if each.scored]) < 2:
        return None
    if len(values) > 1 or None in values:
        return _easy(run)
    earned = number(next(iter(values)) or 0.0)
    column, total = _contained(run)
    seen = ""
    if total:
        seen = f" {total} of them contain the value of their column “{visible(column)}”, and earned {earned} too."
    return Finding(
        "same reward",
        f"Every answer earned exactly {earned}",
        f"All {run.answers} answers of {len(run.digests)} updates earned {earned}.{seen}",
        "The reward cannot tell any two answers apart, so there is nothing to learn from. Often it compares things of "
        "different types, such as the text “30” with the number 30, or reads another column."
        if seen
        else "The reward cannot tell any two answers apart, so there is nothing to learn from.",
        "Read the reward function beside these answers; if it is right, the prompts are too hard or too easy.",
        ("reward_weights",),
        run.example,
        run.examples,
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


def differs(run: Evidence) -> str:
    best = run.now.best
    return f"the best answer earned {number(best)}" if best is not None and run.now.reward is None else ""


def inverted(run: Evidence) -> Finding | None:
    """Answers that contain the right one earn less."""
    for name, found in _pooled_gold(run).items():
        if name.lower() in GOLD_COLUMNS and found.all >= COMPARISONS and found.share <= UPSIDE_DOWN:
            lost = found.all - found.won
            return Finding(
                "inverted",
                "The reward punishes right answers",
                f"In {number(lost)} of {number(found.all)} pairs of answers to the same prompt, the one that contains "
                f"the value of the column “{visible(name)}” earned less.",
                "The sign of the reward is wrong, or it reads the column the other way round.",
                "Turn the sign of the reward function, or of its weight in reward_weights.",
                ("reward_weights",),
                run.example,
                run.examples,
            )
    return None


def _pooled_gold(run: Evidence) -> dict[str, WinCount]:
    names = sorted({name for each in run.digests for name in each.gold})
    return {name: run.pooled("gold", name, COMPARISONS) for name in names}


def _of_pairs(found: WinCount) -> str:
    if found.share == 1:
        return f"all {number(found.all)} pairs"
    return f"{percent(found.share)} of {number(found.all)} pairs"


def upright(run: Evidence) -> str:
    pooled = _pooled_gold(run)
    for name in sorted(pooled, key=lambda name: name.lower() not in GOLD_COLUMNS):
        if (found := pooled[name]).all >= COMPARISONS and found.share >= HALF:
            which = "right answers" if name.lower() in GOLD_COLUMNS else f"answers with their “{visible(name)}”"
            return f"{which} earned more in {_of_pairs(found)}"
    return ""


def length(run: Evidence) -> Finding | None:
    """Length alone decides what an answer earns."""
    unit, found = _longer(run)
    sure = max(found.share, 1 - found.share)
    right = max((p.share for p in _pooled_gold(run).values() if p.all >= COMPARISONS), default=0.0)
    if found.all < PAIRS or sure < DECIDED or right >= sure:
        return None
    which = "longer" if found.share > HALF else "shorter"
    lengths = trend(run.series("completions/mean_length"))
    pieces = "tokens" if run.now.tokens else "words"
    ends = (number(lengths.first), number(lengths.last)) if lengths else ("", "")
    moved = f" Answers went from {ends[0]} to {ends[1]} {pieces}." if ends[0] != ends[1] else ""
    return Finding(
        "length",
        f"The reward pays for {which} answers",
        f"In {percent(sure)} of {number(found.all)} pairs of answers to the same prompt, the {which} one "
        f"(in {pieces if unit == 'tokens' else unit}) earned "
        f"more.{moved}",
        "The reward follows the length of an answer and little else, so the policy learns a length.",
        "Read the reward function: divide by the length, cap it, or reward what the answer says."
        if which == "longer"
        else "Read the reward function: reward what the answer says, and let only needless length cost something.",
        ("reward_weights",),
        run.place("longest"),
    )


HALF = 0.5


def _longer(run: Evidence) -> tuple[str, WinCount]:
    """The unit in which length decides more, with its pairs in the last updates."""
    both = {unit: run.pooled("longer", unit, PAIRS) for unit in ("tokens", "characters")}
    return max(both.items(), key=lambda item: abs(item[1].share - HALF))


def beyond_length(run: Evidence) -> str:
    found = _longer(run)[1]
    return f"the longer answer earned more in {_of_pairs(found)}" if found.all else ""


def gamed(run: Evidence) -> Finding | None:
    """The reward rises while a gold score, or another part of the reward, falls."""
    total = trend(run.series("reward"))
    if total is None or not total.rises:
        return None
    for name in run.history.names():
        kind = name.partition("/")[0]
        if kind not in ("gold", "rewards") or not name.endswith("/mean"):
            continue
        found = trend(run.series(name))
        if found is None or not found.falls or found.first - found.last < FELL * abs(found.first):
            continue
        part = visible(name.removeprefix(f"{kind}/").removesuffix("/mean"))
        what = f"the gold score “{part}”" if kind == "gold" else f"its part “{part}”"
        return Finding(
            "gamed",
            "The reward is being gamed" if kind == "gold" else "One part of the reward rises at another's expense",
            f"From the first {total.ends} to the last {total.ends} of {total.count} updates, the mean reward rose from "
            f"{number(total.first)} to {number(total.last)} while {what} fell from {number(found.first)} to "
            f"{number(found.last)}.",
            "The policy earns more by something that is not what you want.",
            "Mend the reward so that it pays for what the falling score measures; a larger beta slows the drift."
            if kind == "gold"
            else f"Raise the weight of “{part}” in reward_weights, or cap the other parts.",
            ("reward_weights", "beta"),
            run.place("longest"),
        )
    return None


def honest(run: Evidence) -> str:
    for name in run.history.names():
        if name.startswith("gold/") and len(points := run.series(name)) > 1:
            (begin, first), (end, last) = points[0], points[-1]
            return f"from {number(first)} at update {begin} to {number(last)} at {end}"
    return ""


def memorised(run: Evidence) -> Finding | None:
    """The reward rises on the prompts of training alone."""
    held, trained = _known(run.series("eval_reward")), _known(run.series("reward"))
    if len(held) < 2 or len(trained) < 4:
        return None
    (begin, first), (end, last) = held[0], held[-1]
    gain = _near(trained, end) - _near(trained, begin)
    noise = _noise(run, "reward_std") + _noise(run, "eval_reward_std")
    if gain < max(0.1 * abs(_near(trained, begin)), 2 * noise) or last - first > gain / 4:
        return None
    if _near(trained, end) <= last:  # the prompts of training are no better known than others
        return None
    return Finding(
        "memorised",
        "The policy learns its prompts by heart",
        f"From update {begin} to {end} the reward on the prompts of training rose by {number(gain)}, "
        f"to {number(_near(trained, end))}. On held-out prompts it went from {number(first)} to {number(last)}.",
        "What it learns does not carry over to new prompts.",
        "Train on more and more varied prompts, stop earlier, or raise beta.",
        ("beta",),
        run.example,
    )


def _known(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    return [(n, x) for n, x in points if math.isfinite(x)]


def _near(points: Sequence[tuple[int, float]], update: int) -> float:
    """The mean of the three values nearest to an update."""
    nearest = sorted(points, key=lambda point: abs(point[0] - update))[:3]
    return sum(x for _, x in nearest) / len(nearest)


def _noise(run: Evidence, name: str) -> float:
    """The standard error of the difference of two means of three updates each."""
    std = [x for _, x in run.series(name) if math.isfinite(x)]
    return (max(std) / math.sqrt(3 * run.batch) * math.sqrt(2)) if std else 0.0


def carries_over(run: Evidence) -> str:
    held = _known(run.series("eval_reward"))
    if len(held) < 2:
        return ""
    (begin, first), (end, last) = held[0], held[-1]
    return f"from {number(first)} at update {begin} to {number(last)} at {end}"


def silent(run: Evidence) -> Finding | None:
    """The rewards say nothing: every advantage is 0, or most groups are flat and the baseline is their mean."""
    if ceiling(run):
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
        "policy, or its answers too much alike."
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


MOSTLY, GROUPS = 0.9, 16
"""Share of groups without signal from which the rest is too little: DAPO (arXiv:2503.14476) resamples to avoid it; and
the groups that it takes to see this: if 70 % of the groups are equal, 16 in a row are with a probability of 0.3 %."""


def signal(run: Evidence) -> str:
    if full := ceiling(run):
        return f"at its ceiling: {full}"
    groups = run.mean("frac_reward_zero_std", 1)
    if groups is None or groups >= MOSTLY:  # one update proves nothing
        return ""
    return f"{percent(1 - groups)} of the groups have answers that earned differently"
