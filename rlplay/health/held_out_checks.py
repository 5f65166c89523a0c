"""Checks of prompts: that what is learned carries over to those kept out of training, and that these are other ones."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from rlplay.health.finding import Evidence, Finding, NoTick, Points
from rlplay.health.given_answers import BEGIN, END, VALUE
from rlplay.health.prompt_numbers import row_key
from rlplay.trace.numbers import number, percent
from rlplay.trace.text import visible

FEW = 12
"""Held-out prompts below which none of them right says little: of 11, none is right with a probability of 30 % even if
one in ten is."""
THREE = 3
"""The last evaluations, whose mean counts; and the upper bound of a share that was 0 in P prompts, 3/P (95 %)."""
WRITTEN, CHANCE = 0.9, 0.3
"""Share of the prompts that hold their right answer, always at the same place, where a template puts it there; and the
share that hold another row's, from which it may be chance, as with single letters or small numbers.

Where answers are chosen from a list or copied from a text, they stand at places that differ.
"""
LEAKED = 0.5
"""Share of the held-out prompts that are prompts of training, from which they show nothing new."""


class _Gain(NamedTuple):
    """Of the mean reward on held-out prompts from the first evaluation on, with the most that it may really be."""

    prompts: int
    mean: float
    most: float


def _held_gain(run: Evidence) -> _Gain | None:
    """The gain prompt by prompt; None if the prompts' rewards are not on record."""
    known = run.held_out
    if known is None or not known.courses:
        return None
    places = [place for place, update in enumerate(known.updates) if run.first <= update <= run.last]
    if len(places) < 2:
        return None
    rewards = np.array([course.rewards for course in known.courses], dtype=np.float64)[:, places]
    later = rewards[:, max(1, len(places) - THREE) :].mean(axis=1)
    gains = (later - rewards[:, 0])[np.isfinite(later - rewards[:, 0])]
    if not len(gains):
        return None
    scale, count = known.ends[1] - known.ends[0], len(gains)
    error = float(gains.std(ddof=1)) / math.sqrt(count) if count > 1 else scale
    return _Gain(count, float(gains.mean()), float(gains.mean()) + max(2 * error, scale * THREE / count))


def memorised(run: Evidence) -> Finding | None:
    """The reward rises on the prompts of training alone."""
    held, trained, paired = run.known("eval_reward"), run.known("reward"), _held_gain(run)
    if len(held) < 2 or len(trained) < 4:
        return None
    (begin, first), (end, last) = held[0], held[-1]
    gain = _near(trained, end) - _near(trained, begin)
    noise = _noise(run, "reward_std", run.batch)
    if paired is None:
        noise += _noise(run, "eval_reward_std" if run.known("eval_reward_std") else "reward_std", run.batch)
    if gain < max(0.1 * abs(_near(trained, begin)), 2 * noise) or last - first > gain / 4:
        return None
    if paired is not None and (paired.prompts < FEW or paired.most > gain / 2):
        return None
    if _near(trained, end) <= last:  # the prompts of training are no better known than others
        return None
    prompts = "held-out prompts" if paired is None else f"{paired.prompts} held-out prompts"
    return Finding(
        "memorised",
        "The policy learns its prompts by heart",
        f"From update {begin} to {end} the reward on the prompts of training rose by {number(gain)}, "
        f"to {number(_near(trained, end))}. On {prompts} it went from {number(first)} to {number(last)}.",
        "What it learns does not carry over to new prompts.",
        "Train on more and more varied prompts, stop earlier, or raise beta.",
        ("beta",),
        run.example,
    )


def _near(points: Points, update: int) -> float:
    """The mean of the three values nearest to an update."""
    place = bisect_left(points, update, key=lambda point: point[0])
    nearest = sorted(points[max(0, place - 3) : place + 3], key=lambda point: abs(point[0] - update))[:3]
    return sum(x for _, x in nearest) / len(nearest)


def _noise(run: Evidence, name: str, answers: int) -> float:
    """The standard error of the difference of two means of three updates each."""
    std = [x for _, x in run.known(name)]
    return (max(std) / math.sqrt(3 * answers) * math.sqrt(2)) if std else 0.0


def leaked(run: Evidence) -> Finding | None:
    """Prompts that should be kept out of training are trained on."""
    seen, prompts, rows = _seen(run)
    if not prompts or rows < LEAKED * prompts or prompts < 2:
        return None
    return Finding(
        "leaked",
        "The held-out prompts are prompts of training",
        f"{rows} of the {prompts} held-out prompts, with the same columns, are among the prompts of the {len(seen)} "
        "updates that were looked at.",
        "The data hold the same rows more than once, or both sets come from the same rows. The held-out reward then "
        "measures what was trained, and memorising looks like learning.",
        "Take duplicates out of the data before they are split, or name another file for the evaluation.",
        place=run.example,
    )


def _seen(run: Evidence) -> tuple[list[frozenset[int]], int, int]:
    """The prompts of each update, the number of held-out prompts, and how many of these are among them."""
    known = [each.prompts for each in run.digests if each.prompts]
    courses = [] if run.held_out is None else run.held_out.courses
    trained = frozenset().union(*known)
    return known, len(courses), sum(row_key(each.prompt, each.columns) in trained for each in courses)


def carries_over(run: Evidence) -> str:
    held, paired = run.known("eval_reward"), _held_gain(run)
    if len(held) < 2:
        return ""
    _, prompts, rows = _seen(run)
    if rows:
        return NoTick(f"{rows} of the {prompts} held-out prompts are prompts of training")
    (begin, first), (end, last) = held[0], held[-1]
    text = f"from {number(first)} at update {begin} to {number(last)} at {end}"
    if paired is None:
        return text
    text = f"{text}, {paired.prompts} prompts"
    return text if paired.prompts >= FEW else NoTick(f"{text} only")


def one_prompt(run: Evidence) -> Finding | None:
    """Every prompt of every update is the same one, although each batch has several."""
    found = [each for each in run.digests if each.prompt_texts]
    texts = frozenset().union(*(each.prompt_texts for each in found))
    groups = sum(each.groups for each in found)
    if len(texts) != 1 or len(found) < THREE or groups < FEW or max(each.groups for each in found) < 4:
        return None
    if any(each.walks for each in found):
        return None
    rows = frozenset().union(*(each.prompts for each in found))
    if len(rows) > 1 and any(each.episodes for each in found):
        return None  # the environment's replies differ
    other = f" Their columns differ: there are {len(rows)} different rows." if len(rows) > 1 else ""
    return Finding(
        "one prompt",
        "All prompts are the same",
        f"In {len(found)} updates all {groups} groups have the same prompt.{other}",
        "The rows are copies of one another, or the part that differs is not in the prompt: a template or a function "
        "that makes prompts drops it."
        if len(rows) > 1
        else "The rows are copies of one another.",
        "Count the different prompts in the data, and print three of them as the model reads them.",
        place=run.example,
        examples=run.examples,
    )


def given(run: Evidence) -> Finding | None:
    """The right answer stands in the prompt, at a place that is the same in all prompts."""
    for name in sorted({name for each in run.digests for name in each.given}):
        found = reduce(add, (each.given[name] for each in run.digests if name in each.given))
        rows = len(frozenset().union(*(each.prompts for each in run.digests)))
        same = [place for place, count in found.places.items() if count >= WRITTEN * found.rows]
        if rows < FEW or found.within < WRITTEN * found.rows or not same:
            continue
        place = max(same, key=len)
        if found.compared < FEW or found.others > CHANCE * found.compared:
            continue
        return Finding(
            "given away",
            "The right answer stands in the prompt",
            f"{found.within} of {found.rows} prompts contain the value of their column “{visible(name)}”, "
            f"{found.places[place]} of them {_where(place)}. The value of another row stands in {found.others} of "
            f"{found.compared}.",
            "A template or a function that makes prompts puts the answer into them, so the policy learns to copy it. "
            "Only where copying is the task is this meant.",
            f"Leave “{visible(name)}” out of the prompt: print three prompts as the model reads them.",
            place=run.example,
            examples=run.examples,
        )
    return None


def _where(place: str) -> str:
    """A place of `GivenAnswers` in words."""
    around = visible(place.replace(VALUE, "").strip(BEGIN + END))
    if not around:
        return "at the beginning" if BEGIN in place else "at the end"
    return f"{'after' if place.endswith(VALUE) else 'before'} “{around}”"


def varied(run: Evidence) -> str:
    found = [each for each in run.digests if each.prompt_texts]
    texts = frozenset().union(*(each.prompt_texts for each in found))
    groups = sum(each.groups for each in found)
    if groups < FEW:
        return ""
    text = f"{len(texts)} different prompts in {groups} groups"
    return text if len(texts) >= FEW else NoTick(f"{text} only ({percent(len(texts) / groups)})")
