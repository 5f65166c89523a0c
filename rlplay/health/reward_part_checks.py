"""Checks of what a reward is made of: parts that cancel, that punish right answers, or whose noise is blown up."""

from __future__ import annotations

import math
from functools import reduce
from itertools import combinations
from operator import add

from rlplay.health.digest import TokenPlace
from rlplay.health.ending_checks import FEWEST
from rlplay.health.finding import NOT_USED, RECENT, Evidence, Finding, NoTick
from rlplay.health.part_numbers import PartNumbers
from rlplay.health.reward_checks import COMPARISONS, UPSIDE_DOWN, inverted
from rlplay.health.signal_checks import within_groups
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

CANCELLED = 0.001
"""Share of the parts' variance that is left in their sum, from which they cancel; rounding leaves 1e-16."""
AGAINST = -0.4
"""Correlation within groups of being right with a part that pays the wrong answers; besides, it gives the right one of
two answers less in 9 of 10 pairs, and has few levels, as a test has.

A test of right answers with the wrong sign has −1, if the column's value is all that it looks for. A part for brevity,
where right answers need words, has many levels.
"""
SEEN, RIGHT = 16, 16
"""Answers at the highest reward, and right answers in all, before "none of them is right" means anything."""
CHANCE = 1e-3
"""Probability below which it is no chance."""
MANY, NOISY = 16, 0.3
"""Groups with a signal, and the share of them whose signal is next to nothing."""
PAYS, DROWNED = 0.6, 0.01
"""Correlation within groups with being right of a part that tests it; and the share of the largest variance, a tenth of
its deviation, below which a part decides nothing."""
FEW = 3
"""Different values of a part, in an update, that a test has: wrong, right, and perhaps none."""
NEARLY_ALL = 0.98


def _parts(run: Evidence, updates: int) -> PartNumbers | None:
    """The sums of the newest updates with the same parts."""
    known = [each.parts for each in run.recent(updates) if each.parts is not None]
    same = [each for each in known if each.names == known[-1].names]
    return reduce(add, same) if same else None


def cancel(run: Evidence) -> Finding | None:
    """Parts vary, and their sum does not."""
    found = _parts(run, len(run.digests))
    scored = [each for each in run.digests if each.parts is not None]
    if found is None or found.answers < FEWEST or len(scored) < 2:
        return None
    whole, each = _variances(found)
    if sum(each) <= 0 or whole > CANCELLED * sum(each):
        return None
    first, second = min(combinations(range(len(found.names)), 2), key=lambda pair: found.products[pair[0]][pair[1]])
    together = found.products[first][second] / math.sqrt(each[first] * each[second])
    names = f"“{visible(found.names[first])}” and “{visible(found.names[second])}”"
    return Finding(
        "cancelling",
        "The parts of the reward cancel",
        f"In {found.answers} answers of {len(scored)} updates {names} vary between answers to the same prompt, with a "
        f"correlation of {number(together)}, and their weighted sum is always the same.",
        "What one part pays, another takes back: they measure the same thing with opposite signs. The sum cannot tell "
        "any two answers apart, so there is nothing to learn from.",
        "Turn the sign of one of them, or of its weight in reward_weights, or leave one out.",
        ("reward_weights",),
        run.example,
        run.examples,
    )


def _variances(found: PartNumbers) -> tuple[float, list[float]]:
    """The sums of squares of the whole reward and of each part, within groups."""
    places = range(len(found.names))
    whole = sum(found.products[a][b] for a in places for b in places)
    return whole, [found.products[a][a] for a in places]


def _with_right(found: PartNumbers, place: int) -> float:
    """The correlation of a part with being right, within groups; 0 if either never varies."""
    spread = found.products[place][place] * found.mixed
    return found.right[place] / math.sqrt(spread) if spread > 0 else 0.0


def drowned(run: Evidence) -> Finding | None:
    """The part that pays right answers is lost beside one on a far larger scale."""
    found = _parts(run, len(run.digests))
    if found is None or not found.right or len(found.names) < 2:
        return None
    _, each = _variances(found)
    like = [_with_right(found, place) for place in range(len(each))]
    loud = max(range(len(each)), key=lambda place: each[place])
    for place, name in enumerate(found.names):
        pairs, square, together = found.won[place], each[place], like[place]
        if pairs.all < COMPARISONS or together < PAYS or square > DROWNED * each[loud] or like[loud] >= PAYS:
            continue
        other = visible(found.names[loud])
        return Finding(
            "drowned",
            f"“{other}” drowns “{visible(name)}”",
            f"“{visible(name)}” pays right answers (correlation {number(together)} in {number(pairs.all)} pairs of "
            f"answers to the same prompt), but within groups the standard deviation of “{other}”, "
            f"{number(math.sqrt(each[loud] / found.answers))}, is {number(math.sqrt(each[loud] / square), 2)} times as "
            f"large as its {number(math.sqrt(square / found.answers))}.",
            "The reward is the sum of its parts: what varies most decides which answer is the better one, and the "
            "policy learns that part alone.",
            f"Lower the weight of “{other}” in reward_weights, or divide it by its range, until the parts vary alike.",
            ("reward_weights",),
            run.example,
            run.examples,
        )
    return None


def against(run: Evidence) -> Finding | None:
    """A part pays wrong answers, or what is paid best is never right, although the whole does not show it."""
    return None if inverted(run) else _part_against(run) or _best_is_wrong(run)


def _part_against(run: Evidence) -> Finding | None:
    found = _parts(run, len(run.digests))
    if found is None or not found.right or len(found.names) < 2:
        return None
    for place, name in enumerate(found.names):
        pairs, together = found.won[place], _with_right(found, place)
        if together > AGAINST or pairs.all < COMPARISONS or pairs.share > UPSIDE_DOWN or found.kinds[place] > FEW:
            continue
        return Finding(
            "inverted",
            f"“{visible(name)}” punishes right answers",
            f"In {number(pairs.all - pairs.won)} of {number(pairs.all)} pairs of answers to the same prompt, the one "
            f"that contains the right answer got less of “{visible(name)}” (correlation {number(together)}). The other "
            "parts hide this in the whole reward.",
            "The sign of this part is wrong, or it compares with another column. The policy learns what the other "
            "parts pay for, and to be wrong.",
            f"Turn the sign of “{visible(name)}”, or of its weight in reward_weights.",
            ("reward_weights",),
            run.example,
            run.examples,
        )
    return None


def _best_is_wrong(run: Evidence) -> Finding | None:
    found = _parts(run, len(run.digests))
    if found is None or len(found.levels) < 2:
        return None
    best = max(found.levels)
    count, right = found.levels[best]
    all_right, answers = sum(r for _, r in found.levels.values()), found.answers
    if right or count < SEEN or all_right < RIGHT or (1 - all_right / answers) ** count > CHANCE:
        return None
    return Finding(
        "inverted",
        "The answers that earn most are never right",
        f"{all_right} of {answers} answers contain the right one. Of the {count} answers with the highest reward, "
        f"{number(best)}, none does.",
        "The sign of what pays for right answers is wrong, or something else pays more where the answer is wrong.",
        "Read the reward function beside these answers; turn the sign of the part that compares with the right one.",
        ("reward_weights",),
        run.example,
        run.examples,
    )


def inflated(run: Evidence) -> Finding | None:
    """Dividing by a group's deviation makes next to nothing as large as a real difference."""
    last = [(each.update, each.tiny) for each in run.recent(max(RECENT, MANY)) if each.tiny is not None]
    groups, tiny = sum(each.groups for _, each in last), sum(each.tiny for _, each in last)
    if groups < MANY or tiny < NOISY * groups or not within_groups(run):
        return None
    scale = run.settings.scale_rewards if run.stated("scale_rewards") else "group"
    if scale not in ("group", "batch"):
        return None
    update, worst = min(((n, each) for n, each in last if each.tiny), key=lambda pair: pair[1].spread)
    return Finding(
        "tiny spread",
        "Noise in the rewards becomes large advantages",
        f"In {tiny} of {groups} groups whose answers earned differently, they did by less than 1 % of what there is to "
        f"earn. In update {update} a difference of {number(worst.spread)} became an advantage of "
        f"{number(worst.advantage)}.",
        f"Advantages are divided by the {scale}'s standard deviation, however small it is. Where all answers are "
        "right, or all wrong, the policy then learns whatever decides the last digit, such as a bonus for length.",
        "Set scale_rewards to none, or round the rewards; leave out what is not meant to count.",
        ("scale_rewards",),
        TokenPlace(update, worst.answer),
    )


def balanced(run: Evidence) -> str:
    found = _parts(run, 2 * RECENT)
    if found is None or len(found.names) < 2:
        return NOT_USED
    if found.answers < FEWEST:
        return ""
    whole, each = _variances(found)
    dead = [visible(name) for name, square in zip(found.names, each, strict=True) if square <= 0]
    if dead:
        return NoTick(f"“{dead[0]}” is the same for all answers to a prompt, in {found.answers} answers")
    shares = [sum(row) / whole if whole > 0 else 0.0 for row in found.products]
    said = ", ".join(f"{visible(name)} {percent(share)}" for name, share in zip(found.names, shares, strict=True))
    text = f"of the variance within groups, in {found.answers} answers: {said}"
    return NoTick(text) if max(shares) >= NEARLY_ALL else text
