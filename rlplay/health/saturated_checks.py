"""The check of a reward of which one part has nothing left to teach, and another has never paid anything."""

from __future__ import annotations

import math
import re
from collections import Counter

import numpy as np

from rlplay.health.counts import GOLD_COLUMNS
from rlplay.health.finding import RECENT, Evidence, Finding
from rlplay.health.trend import WINDOW, trend
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

LONG = 10
"""Updates in which a part has paid next to nothing, and by which a part that is only a matter of time would have."""
NOTHING, FULL = 0.05, 0.9
"""A mean of a part that is next to nothing, and the share of its best mean that a saturated part keeps."""
KNOWN = 0.8
"""Share of right answers from which a part that pays nothing is no loss: a penalty that nobody incurs, for one."""
_RIGHT = re.compile(r"right|correct|accura|answer|solv|exact|gold|match|equal|verif|test", re.IGNORECASE)
_FORM = re.compile(r"format|tag|xml|structure|think|box|style|schema|json|length", re.IGNORECASE)
_FINE = re.compile(r"penal|overlong|repeti|toxic|cost", re.IGNORECASE)
"""Names of parts for being right, for the form of an answer, and of parts whose 0 is the best."""


def saturated(run: Evidence) -> Finding | None:
    """One part is earned by all answers, another by none, and the answers are not right."""
    means = {name: run.known(f"rewards/{name}/mean") for name in _parts(run)}
    if len(means) < 2:
        return None
    nothing = [name for name, points in means.items() if _earns_nothing(name, [x for _, x in points])]
    full = [name for name, points in means.items() if _is_full(run, name, [x for _, x in points])]
    right, said = _right(run)
    for part in nothing if full and (right is None or right < KNOWN) else []:
        if right is None and not (_RIGHT.search(part) or any(map(_FORM.search, full))):
            continue
        points, other = [x for _, x in means[part]], [x for _, x in means[full[0]]]
        highest = max(points)
        earned = "has never been earned" if highest <= 0 else f"was at most {number(highest)} on average"
        why = (
            "No answer is paid as right, although some are: the reward looks for them in another form than the model "
            "writes."
            if right and highest <= 0
            else "Hardly any answer is right, so that part cannot tell one from another."
        )
        return Finding(
            "saturated",
            f"Only “{visible(full[0])}” is earned, and nothing is left to learn",
            f"“{visible(part)}” {earned} in {len(points)} updates.{said} “{visible(full[0])}” is earned by nearly all "
            f"answers: {number(sum(other[-RECENT:]) / RECENT)} on average in the last {RECENT} updates.",
            f"One part of the reward is saturated and the other pays nobody. {why}",
            f"Try “{visible(part)}” on an answer that is plainly right. If it is paid, take easier prompts, pay for "
            "steps on the way, or train on examples first.",
            ("reward_weights",),
            run.example,
            run.examples,
        )
    return None


def _parts(run: Evidence) -> list[str]:
    return [name[len("rewards/") : -len("/mean")] for name in run.history.names()
            if name.startswith("rewards/") and name.endswith("/mean")]  # fmt: skip


def _earns_nothing(name: str, means: list[float]) -> bool:
    """Whether all means since the start are 0, or next to it and do not rise."""
    if len(means) < LONG or min(means) < 0 or _FINE.search(name):
        return False
    found = trend(list(enumerate(means)))
    return not any(means) or (float(np.mean(means[-WINDOW:])) <= NOTHING and found is not None and not found.rises)


def _is_full(run: Evidence, name: str, means: list[float]) -> bool:
    """Whether nearly all answers earn all that a part has ever paid on average."""
    spread = run.mean(f"rewards/{name}/std", RECENT)
    if len(means) < LONG or max(means) <= NOTHING or not math.isfinite(max(means)):
        return False
    return min(means[-RECENT:]) >= FULL * max(means) and (spread is None or spread <= max(means) / 3)


def _right(run: Evidence) -> tuple[float | None, str]:
    """The share of answers of late that are right, as far as a column or a gold score tells, with a sentence."""
    last = run.recent(RECENT)
    total: Counter[str] = Counter()
    for each in last:
        total.update({name: count for name, count in each.contained.items() if name.lower() in GOLD_COLUMNS})
    answers = sum(each.answers for each in last)
    if total:
        name, count = total.most_common(1)[0]
        return count / answers, f" {percent(count / answers)} of the last {answers} answers contain the value of the " \
                                f"column “{visible(name)}”."  # fmt: skip
    scores = [run.mean(name, RECENT) for name in run.history.names() if re.fullmatch(r"gold/.+/mean", name)]
    known = [score for score in scores if score is not None]
    return (max(known), f" A gold score is {number(max(known))}.") if known else (None, "")
