"""Texts about TRPO's search for a step: how far it is, what it has found, and which key to press next."""

from __future__ import annotations

from collections.abc import Iterable

from rlplay.algorithms.settings import Settings
from rlplay.trace.numbers import number, percent
from rlplay.trace.records import Searched
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import plain

NOTHING = "The surrogate has no gradient: there is no direction to search, and the policy does not move."


def split(searched: Iterable[Searched]) -> tuple[list[Searched], list[Searched]]:
    """The iterations of conjugate gradient, and the steps that the line search tried."""
    every = list(searched)
    return [each for each in every if each.kind == "cg"], [each for each in every if each.kind == "line"]


def detail(update: Update) -> str:
    """The progress of the search, in two or three words."""
    last = update.searched[-1]
    return f"{'CG' if last.kind == 'cg' else 'step tried'} {last.iteration}/{last.iterations}"


def narrate(update: Update, settings: Settings) -> tuple[str, str]:
    """What the search has found so far, or found in the end, and which key to press next."""
    found, tried = split(update.searched)
    limit = settings.max_kl
    if not update.steps:
        following = "`.` takes one iteration, `s` goes to the end of the search."
        if not tried:
            return (
                f"Looking for the natural gradient: {found[-1].iteration} of at most {found[-1].iterations} iterations "
                f"of conjugate gradient leave a residual of {percent(found[-1].residual)}. A step to the KL limit in "
                f"this direction would gain about {number(found[-1].gain)}."
            ), following
        trial = tried[-1]
        verdict = "accepted" if trial.accepted else "too far" if not _within(trial, limit) else "no gain"
        return (
            f"A step of {plain(trial.step)} of the way to the limit has a KL of {number(trial.kl or 0.0)} (limit "
            f"{number(limit)}) and gains {number(trial.gain)}: {verdict}."
        ), following
    following = "`u` shows what it changed."
    if not found:
        return NOTHING, following
    if not tried or not tried[-1].accepted:
        said = f"None of {len(tried)} steps kept the KL limit of {number(limit)} and gained: the policy did not move."
        return said, following
    trial = tried[-1]
    return (
        f"One step along the natural gradient, {plain(trial.step)} of the way to the limit: KL "
        f"{number(trial.kl or 0.0)} of at most {number(limit)}, and the surrogate gained {number(trial.gain)}."
    ), following


def _within(trial: Searched, limit: float) -> bool:
    return trial.kl is not None and trial.kl <= limit
