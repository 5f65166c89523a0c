"""Checks of what the reward pays for: nothing, length, the wrong thing, or the prompts of training alone."""

from __future__ import annotations

from typing import Literal

from rlplay.health.counts import GOLD_COLUMNS, WinCount
from rlplay.health.finding import NOT_USED, Evidence, Finding, NoTick
from rlplay.health.trend import trend
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

DECIDED, PAIRS = 0.98, 100
"""Share of pairs in which length alone tells who earned more, and how many pairs that takes.

A reward that counts characters gives 1.00 in characters and 0.99 in tokens. Rewards that do not look at length reached
0.976 in 123 pairs (helpful answers, seed 1) and usually stay below 0.93. Where a right answer needs longer working they
reach 0.995, but there a column of the prompt tells even more, and the check stays silent.
"""
UPSIDE_DOWN, COMPARISONS = 0.1, 20
UPRIGHT = 0.8
"""Share of pairs in which the right answer earns more: with less, another part of the reward may decide."""
_TELLS: tuple[tuple[Literal["scores", "gold"], str], ...] = (
    ("scores", "the gold score “{}” says is right"), ("gold", "contains the value of the column “{}”"),
)  # fmt: skip
FELL = 0.2
"""Share of its start by which a score must have fallen, besides that the fall is beyond chance."""


def inverted(run: Evidence) -> Finding | None:
    """Answers that a gold score or the column with the right answer says are right earn less."""
    for name, (whole, newest) in _pooled(run).items():
        if newest.all < COMPARISONS or newest.share > HALF or min(whole.share, newest.share) > UPSIDE_DOWN:
            continue
        found, since = (newest, "") if newest.share <= UPSIDE_DOWN else (whole, " since the run began")
        if _by_length(run) > 1 - found.share:  # right answers are longer or shorter, and that is what is paid
            continue
        return Finding(
            "inverted",
            "The reward punishes right answers",
            f"In {number(found.all - found.won)} of {number(found.all)} pairs of answers to the same prompt{since}, "
            f"the one that {name} earned less.",
            "The sign of the reward is wrong, or it reads the column the other way round.",
            "Turn the sign of the reward function, or of its weight in reward_weights.",
            ("reward_weights",),
            run.example,
            run.examples,
        )
    return None


def _by_length(run: Evidence) -> float:
    """The share of pairs that length decides, where it decides all but a few; else 0."""
    found = _longer(run)[1]
    sure = max(found.share, 1 - found.share)
    return sure if found.all >= PAIRS and sure >= DECIDED else 0.0


def _pooled(run: Evidence) -> dict[str, tuple[WinCount, WinCount]]:
    """By what tells which answer is right: whether it earned more, in the whole run and in the newest updates.

    A gold score is asked first. A column tells less: a wrong answer may contain its value as well.
    """
    found: dict[str, tuple[WinCount, WinCount]] = {}
    for kind, how in _TELLS:
        names = sorted({name for each in run.digests for name in getattr(each, kind)})
        for name in [name for name in names if _tells(run, kind, name)]:
            pairs = [getattr(each, kind).get(name, WinCount()) for each in run.digests]
            newest = run.pooled(kind, name, COMPARISONS)
            found[how.format(visible(name))] = sum(pairs, WinCount()), newest
    return found


def _tells(run: Evidence, kind: str, name: str) -> bool:
    """Whether a column is named as the right answer, or a score is right or wrong in every update, and not in a few."""
    if kind == "gold":
        return name.lower() in GOLD_COLUMNS
    return all(name in each.scores for each in run.digests if each.scored)


def _pooled_gold(run: Evidence) -> dict[str, WinCount]:
    names = sorted({name for each in run.digests for name in each.gold})
    return {name: run.pooled("gold", name, COMPARISONS) for name in names}


def _of_pairs(found: WinCount) -> str:
    if found.share == 1:
        return f"all {number(found.all)} pairs"
    return f"{percent(found.share)} of {number(found.all)} pairs"


def upright(run: Evidence) -> str:
    told = {how: newest for how, (_, newest) in _pooled(run).items()}
    if not told:
        return NoTick("no column of the prompts is named as the right answer, and no gold score says right or wrong")
    found = max(told.values(), key=lambda each: each.all)
    if found.all < COMPARISONS:
        return ""
    said = f"right answers earned more in {_of_pairs(found)}"
    return said if found.share >= UPRIGHT else NoTick(f"{said} only")


def length(run: Evidence) -> Finding | None:
    """Length alone decides what an answer earns."""
    if not any(each.scored for each in run.digests):
        return None
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
    if not any(each.scored for each in run.digests):
        return _longer_over_updates(run)
    if run.now.walks:
        return NOT_USED
    found = _longer(run)[1]
    if found.all < PAIRS:
        return ""
    said = f"the longer answer earned more in {_of_pairs(found)}"
    return said if max(found.share, 1 - found.share) < DECIDED else NoTick(f"{said}; right answers did, too")


def _longer_over_updates(run: Evidence) -> NoTick:
    """What metrics alone tell: that lengths and rewards rise together shows no cause."""
    lengths, rewards = trend(run.known("completions/mean_length")), trend(run.known("reward"))
    if lengths is None or rewards is None:
        return NoTick("not enough data: needs 5 updates")
    text = f"answers went from {number(lengths.first)} to {number(lengths.last)} tokens"
    if not (lengths.rises and rewards.rises):
        return NoTick(f"{text}; what pays for it only the reward of each answer would say")
    rose = f"while the reward rose from {number(rewards.first)} to {number(rewards.last)}"
    return NoTick(f"{text} {rose}: whether length is what pays only the reward of each answer would say")


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
    total = trend(run.known("reward"))
    scores = [name for name in run.history.names() if name.startswith("gold/") and name.endswith("/mean")]
    courses = [found for name in scores if (found := trend(run.known(name))) is not None]
    if not scores:
        return NoTick("no gold score")
    if not courses or total is None:
        return ""
    if not total.rises:
        return NoTick("the reward does not rise, so nothing shows what it is gained by")
    worst = min(courses, key=lambda found: found.last - found.first)
    rose = f"while the reward rose from {number(total.first)} to {number(total.last)}"
    text = f"from {number(worst.first)} to {number(worst.last)} in {worst.count} updates, {rose}"
    return text if worst.rises else NoTick(text)  # a score that stays may be what the reward leaves out
