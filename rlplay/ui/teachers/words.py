"""What is said of who taught a token: one sentence in plain English, the sum line, and what a test found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.teachers import Move, TakenAway, Taught
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.session.teachers import Subject

APART = 0.02
"""The relative difference between the sum of the shares and the first order from which on it is said."""
_MOSTLY = 0.5
"""The part of all that pushed one way from which on a cause is what "mostly" did it."""
_CAUSES = 8
"""Causes that are put into words, the strongest."""
_STILL = 1e-4
"""A smaller move, in nats, is none to explain."""


def probability(q: float) -> str:
    """A probability from its logarithm: .618; for a whole answer, which may be tiny, 3e-12."""
    value = math.exp(min(q, 0.0))
    if value >= 0.9995:
        return "1.000"
    return f"{value:.3f}".replace("0.", ".", 1) if value >= 0.0005 else f"{value:.0e}".replace("e-0", "e-")


def nats(value: float, scale: float = 1.0) -> str:
    """A signed number of nats with three decimals, −.124; with more where `scale`, the largest beside it, is small."""
    digits = 3 if abs(scale) >= 0.02 else 4 if abs(scale) >= 0.002 else 5
    text = signed(value, digits).strip()
    return "0" if float(text.replace("−", "-")) == 0 else text.replace("0.", ".", 1)


def moved(taught: Taught) -> str:
    """From where to where the update moved the target, and by which factor."""
    factor = math.exp(max(min(taught.measured, 20.0), -20.0))
    change = f"{nats(taught.measured, taught.measured)} nats, ×{factor:.3g}"
    return f"{probability(taught.before)} → {probability(taught.after)} ({change})"


def sum_line(taught: Taught) -> str:
    """What the parts add up to, beside what was measured."""
    rest, size = sum(taught.rest.values()), max(abs(taught.predicted), abs(taught.measured))
    parts = f"this batch {nats(taught.batch, size)}, earlier {nats(taught.earlier, size)}, rest {nats(rest, size)}"
    return f"predicted {nats(taught.predicted, size)} ({parts}) · measured {nats(taught.measured, size)}"


def rest_line(taught: Taught) -> str:
    """What the rest consists of; empty if there is none."""
    named = [f"{name} {nats(value, value)}" for name, value in taught.rest.items() if abs(value) >= _STILL]
    return f"rest: {', '.join(named)}" if named else ""


def disagreement(taught: Taught) -> str:
    """How far the sum of the shares is from the step's first order, if it is visible; else empty."""
    size = max(abs(taught.predicted), abs(taught.first_order))
    apart = abs(taught.predicted - taught.first_order) / size if size >= _STILL else 0.0
    if apart < APART:
        return ""
    return (
        f"shares add up to {nats(taught.predicted, size)}, ∇q·Δθ is {nats(taught.first_order, size)}: {apart:.0%} apart"
    )


def without_line(away: TakenAway, taught: Taught, count: int) -> str:
    """Where the target would be without some answers, beside where it is and what their shares add up to."""
    moves = away.without - away.before, away.after - away.before
    size, them = max(map(abs, moves)), "them" if count > 1 else "it"
    said = f"without {them} {nats(moves[0], size)} instead of {nats(moves[1], size)}"
    shares = float(taught.shares[away.tokens].sum()) if len(taught.shares) else 0.0
    held = f"its share is {nats(shares, size)}" if count == 1 else f"their shares are {nats(shares, size)}"
    ends = f"{probability(away.without)} instead of {probability(away.after)}"
    return f"{said} ({ends}) · measured by taking the update once more · {held}"


NOT_THE_SHARE = (
    "A share adds up; this is another number. The update was repeated without their credit, and Adam divides each step "
    "by the size of the gradients that are left, so what remains is scaled up."
)


class Cause(NamedTuple):
    """Tokens that pushed for one reason: what it was, how many answers, and what their shares add up to."""

    what: str
    answers: int
    total: float


def sentence(taught: Taught, update: Update, subject: Subject) -> str:
    """What moved the target, in one sentence: the cause that explains most of it, if any does, by its shares."""
    name, size = subject.name, taught.predicted
    if abs(taught.measured) < _STILL and abs(size) < _STILL:
        return f"This update did not move {name}."
    if not size or (abs(size) >= _STILL and taught.measured * size < 0):
        moves = f"the shares add up to {nats(size, size)}, but {name} moved by {nats(taught.measured, size)}"
        return f"First order does not explain this update: {moves}."
    up = size > 0
    sign = 1 if up else -1
    gross = float(np.maximum(sign * _pushes(taught), 0).sum())
    verb = f"pushed {name} {'up' if up else 'down'}"
    earlier = sign * taught.earlier
    causes = sorted(_causes(taught, update, up), key=lambda cause: -abs(cause.total))
    best = causes[0] if causes else None
    if earlier > 0 and (best is None or earlier >= abs(best.total)):
        how = "Mostly earlier updates" if earlier >= _MOSTLY * gross else "Most of all, earlier updates"
        second = f"; in this batch, {best.what} ({nats(best.total, size)})" if best is not None else ""
        return f"{how} {verb}, through the optimizer's momentum ({nats(taught.earlier, size)}){second}."
    if best is None:
        return f"No token of update {update.number} {verb}."
    how = "Mostly" if abs(best.total) >= _MOSTLY * gross else "Most of all,"
    return f"{how} {best.what} {verb} ({nats(best.total, size)} of {nats(sign * gross, size)} in that direction)."


def _pushes(taught: Taught) -> Array:
    """Everything that pushed, either way."""
    return np.array([*taught.shares.astype(np.float64), taught.earlier, *taught.rest.values()])


def _causes(taught: Taught, update: Update, up: bool) -> Iterator[Cause]:
    """The pushes in one direction by what pushed: the same text, praised or blamed, at this place or elsewhere."""
    sampled, pull = update.sampled, update.pull()
    if sampled is None or pull is None or len(taught.shares) != len(pull):
        return
    here, same = _at_the_place(taught, sampled), _same_prompt(taught, sampled)
    owners = np.repeat(np.arange(len(sampled.group)), np.diff(sampled.offsets))
    known = np.isfinite(pull) & (pull != 0) & (taught.shares != 0)
    tokens = np.flatnonzero(known & ((taught.shares > 0) == up))
    keys = np.stack([sampled.token_ids[tokens], pull[tokens] > 0, here[tokens]], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=taught.shares[tokens].astype(np.float64), minlength=len(kinds))
    for kind in np.argsort(-np.abs(totals))[:_CAUSES].tolist():
        found = tokens[which.ravel() == kind]
        answers = np.unique(owners[found])
        text = quoted(sampled.pieces.get(int(kinds[kind, 0]), sampled.texts[found[0]]))
        ground = f"{'credit for' if kinds[kind, 1] else 'blame on'} {len(answers)} answer{'s' * (len(answers) > 1)}"
        to = "" if same[answers].any() else " to other prompts"
        starts = bool(np.isin(found, sampled.offsets[:-1]).all())
        how = f"that wrote {text} here" if kinds[kind, 2] else f"that {'began with' if starts else 'wrote'} {text}"
        yield Cause(f"the {ground}{to} {how}", len(answers), float(totals[kind]))


def _same_prompt(taught: Taught, sampled: Sampled) -> Array:
    """Which of the N answers have the target's prompt."""
    bounds, asked = sampled.prompt_offsets, np.array(taught.target.prompt_ids)
    same = [np.array_equal(sampled.prompt_ids[bounds[g] : bounds[g + 1]], asked) for g in range(len(sampled.prompts))]
    return np.array(same, dtype=bool)[sampled.group]


def _at_the_place(taught: Taught, sampled: Sampled) -> Array:
    """Which of the T tokens were sampled in the target's place: after the same prompt and the same words."""
    found = np.zeros(len(sampled.token_ids), dtype=bool)
    if len(taught.target.places) != 1:
        return found
    place = taught.target.places[0]
    begun = np.array(taught.target.answer_ids[:place])
    for row in np.flatnonzero(_same_prompt(taught, sampled)).tolist():
        start, end = sampled.offsets[row : row + 2].tolist()
        if end - start > place and np.array_equal(sampled.token_ids[start : start + place], begun):
            found[start + place] = True
    return found


def course_line(move: Move, size: float) -> str:
    """What a move consists of."""
    parts = f"this batch {nats(move.batch, size)} · earlier {nats(move.earlier, size)}"
    return f"{parts} · rest {nats(move.rest, size)}" if abs(move.rest) >= _STILL else parts
