"""Texts about clipping: how many tokens are clipped; if none is, why, and what would clip some."""

from __future__ import annotations

import numpy as np

from rlplay.algorithms.settings import Settings, row
from rlplay.trace.numbers import compact
from rlplay.trace.records import Array
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import plain
from rlplay.ui.format.shown_text import BY_KNOB, without_knobs
from rlplay.ui.format.step_word import worded
from rlplay.ui.formula.formula_lines import TokenNumbers, digits
from rlplay.ui.formula.surrogate import why_clipped
from rlplay.ui.words.narration import STILL


def count_clipped(update: Update | None) -> int:
    """The number of tokens clipped in the last optimizer step that included them."""
    states = None if update is None else update.latest_step("clip_state")
    return 0 if states is None else int(np.count_nonzero(np.nan_to_num(states)))


def summary(update: Update | None, s: Settings, adjustable: bool, way: str) -> str:
    """How many tokens are clipped, and the key (`way`) that finds them; if none is, why."""
    count = count_clipped(update)
    if not count:
        return explain_none(update, s, adjustable)
    tokens, them = ("1 token is", "it") if count == 1 else (f"{count} tokens are", "them")
    why = "" if not s.axes_known else ", and the Token panel says why"
    return worded(f"{tokens} clipped, ▲ or ▼: {way} finds {them}{why}.", _word(update))


def explain_clipped(s: Settings, state: int) -> str:
    """Why a token in this clip state has zero gradient, in one sentence."""
    head = why_clipped(s, TokenNumbers(clip_state=state))[0]
    reason = head.partition(": ")[2]
    what = "ratio" if s.surrogate_row.band or s.level_row.band else "probability"
    return f"Here {reason}: its {what} has reached the bound, so its surrogate gradient is zero."


def explain_none(update: Update | None, s: Settings, adjustable: bool = True) -> str:
    """Why none is, with the numbers of this run, and how to see one: two sentences.

    Backticks mark keys. The text names the key for settings only if they are `adjustable`: in a recording they are not.
    The run of another trainer may not name its algorithm; then only what it recorded is known.
    """
    if not s.axes_known:
        if update is not None and update.latest_step("clip_state") is not None:
            return worded("No token is clipped.", _word(update))
        return "What is clipped is not known: the run does not name its algorithm."
    cause, remedy = _cause(update, s)
    why = f"No token is clipped: {cause}. {remedy if adjustable else without_knobs(remedy)}"
    return worded(why, _word(update))


def _word(update: Update | None) -> str:
    return "token" if update is None else update.step_word


def _cause(update: Update | None, s: Settings) -> tuple[str, str]:
    if s.loss_type != "policy_gradient":
        return (
            f"loss_type={s.loss_type} has no ratio to clip",
            f"loss_type=policy_gradient{BY_KNOB} has one.",
        )
    chosen, level = row(s, "surrogate"), s.level_row
    if chosen.clipped is None and level.clipped is None:
        return chosen.instead, f"surrogate=ppo clips{BY_KNOB}."
    steps = update.steps if update is not None else []
    planned = steps[-1].epochs * steps[-1].minibatches if steps else s.num_iterations * s.num_minibatches
    ratio = _ratios(update)
    still = bool((np.abs(ratio - 1) < STILL).all())
    if planned == 1 and still:
        remedy = f"With num_iterations of two or more{BY_KNOB}, tokens can leave the band."
        return "with one optimizer step per batch every ratio is 1", remedy
    if not steps:
        return f"this update has not taken any of its {planned} optimizer steps yet", "`u` takes them."
    if len(steps) == 1 and still:
        return f"at the first of {planned} optimizer steps every ratio is still 1", "`s` takes the next."
    return _why_unclipped(
        ratio, s
    ), f"A smaller epsilon, or a larger learning_rate or num_iterations{BY_KNOB}, clips some."


def _ratios(update: Update | None) -> Array:
    """The ratios of the policy's own tokens, as far as known."""
    ratio = None if update is None else update.latest_step("importance_ratio")
    if ratio is None or update is None or update.sampled is None:
        return np.ones(0)
    return np.asarray(ratio[np.isfinite(ratio) & (update.sampled.mask == 1)])


def _why_unclipped(ratio: Array, s: Settings) -> str:
    """Why no ratio is clipped although ratios have moved."""
    if s.level_row.band:
        return "no token's log-ratio has passed the bound on the side that its advantage pushes it to"
    if not s.surrogate_row.band:
        return "no token's probability has passed the bound on the side that its advantage pushes it to"
    low, high, places = 1 - s.clip_range[0], 1 + s.clip_range[1], digits(s)
    outside = int(((ratio < low) | (ratio > high)).sum())
    band = f"the band {compact(low)} … {compact(high)}"
    if outside:
        return f"{outside} outside {band}, none on the side that its advantage pushes it to"
    return f"the ratios, {plain(ratio.min(), places)} … {plain(ratio.max(), places)}, are all inside {band}"
