"""Which statistic colours the tokens: the one asked for, or the nearest one that distinguishes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rlplay.trace.kinds import Learning
from rlplay.trace.lenses import AUTOMATIC, LENSES, Lens
from rlplay.trace.numbers import compact
from rlplay.trace.update import PHASES, Update
from rlplay.ui.format.legend import PHASE_MARKS
from rlplay.ui.theme.inks import levels
from rlplay.ui.tokens.facts import facts_of

_NEAREST = ("credit", "advantages", "probability", "entropy")
"""The statistics that step in, in this order, after the one that fits the phase."""


class Colouring(NamedTuple):
    """The statistic of the colours; `automatic` if the user chose none.

    Where it steps in for another, that is `wanted`, and `why` says what is wrong with it. If nothing can step in,
    `wanted` is None and `why` is about `lens` itself. `held` is the number of an update that stays on the screen until
    the newest one has the statistic, else 0.
    """

    lens: Lens
    automatic: bool = False
    wanted: Lens | None = None
    why: str = ""
    held: int = 0


def colouring(
    update: Update | None, wanted: Lens, automatic: bool, settings: Learning, held: bool = False
) -> Colouring:
    """How to colour `update` where `wanted` is asked for: never without colour while any statistic has some."""
    if update is None or update.sampled is None:
        return Colouring(wanted, automatic)
    number = update.number if held else 0
    why = lacks(update, wanted)
    if not why:
        return Colouring(wanted, automatic, held=number)
    nearest = (LENSES[name].of(settings) for name in (AUTOMATIC[update.phase], *_NEAREST) if name != wanted.name)
    lens = next((each for each in nearest if not lacks(update, each)), None)
    if lens is None:
        return Colouring(wanted, automatic, None, why, number)
    return Colouring(lens, automatic, wanted, why, number)


def lacks(update: Update, lens: Lens) -> str:
    """Why a statistic distinguishes no token of `update`, in a few words; empty if it does."""
    facts = facts_of(update)
    if facts.lens(lens.name) is None:
        return "none in this update" if reached(update, lens) else f"from {PHASE_MARKS[lens.phase]} on"
    ends = np.array(facts.spread(lens.name))
    if np.isnan(ends).all():
        return f"none of a {update.step_word}"
    if levels(lens, ends).any():
        return ""
    if lens.scale == "states":
        return f"no {update.step_word}"
    neutral = (lens.low + lens.high) / 2 if lens.two_sided else lens.low
    about = "" if (ends == neutral).all() else "about "
    return f"{about}{compact(neutral)} for every {update.step_word}"


def reached(update: Update, lens: Lens) -> bool:
    """Whether `update` has come to the phase that computes a statistic."""
    return PHASES.index(update.phase) >= PHASES.index(lens.phase)
