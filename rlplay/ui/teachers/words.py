"""What is said of who taught a token: one sentence in plain English, the sum line, and what a test found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rlplay.trace.records import Array, Sampled
from rlplay.trace.teachers import Move, TakenAway, Taught
from rlplay.trace.update import Update
from rlplay.ui.format.number_cells import bare, signed
from rlplay.ui.format.shown_text import quoted
from rlplay.ui.session.subjects import Subject

APART = 0.02
"""The relative difference between the sum of the shares and the first order from which on it is said."""
_MOSTLY = 0.5
"""The part of all that pushed one way from which on a cause is what "mostly" did it."""
_EARLIER = "earlier updates, through the optimizer's momentum,"
_ROUGH = 0.2
"""The relative difference between the sum of the shares and the first order from which on no cause is named."""
_LITTLE = 0.25
"""The part of the pushes in the direction of the move: others of that size are said, and if less than it is left."""
_MISSED = 0.5
"""The part of the move that first order misses from which on that is said."""
_ALONE = 0.8
"""The part of a cause from which on one answer is all of it."""
_CAUSES = 8
"""Causes that are put into words, the strongest."""
_STILL = 1e-4
"""A smaller move, in nats, is none to explain."""
_CANCEL, _HUGE = 50.0, 20.0
"""All pushes as a multiple of what is left of them, and the largest share in nats, from which on no cause is named."""


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
    return "0" if float(text.replace("−", "-")) == 0 else bare(text)


def moved(taught: Taught) -> str:
    """From where to where the update moved the target."""
    size = taught.measured
    return f"{probability(taught.before)} → {probability(taught.after)} ({nats(size, size)} nats)"


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


def missed(taught: Taught) -> str:
    """That first order misses much of the move, if it does; else empty."""
    if abs(taught.measured - taught.predicted) < _MISSED * max(abs(taught.measured), _STILL):
        return ""
    return "first order misses much of this move"


def without_line(away: TakenAway, taught: Taught, count: int) -> str:
    """Where the target would be without some answers, beside where it is and what their shares add up to."""
    with_them, without = away.after - away.before, away.without - away.before
    size, them = max(abs(with_them), abs(without)), "them" if count > 1 else "it"
    shares = float(taught.shares[away.tokens].sum()) if len(taught.shares) else 0.0
    held = f"{'its share is' if count == 1 else 'their shares are'} {nats(shares, size)}"
    ends = f"{probability(away.without)} instead of {probability(away.after)}"
    moves = f"without {them} {nats(without, size)} instead of {nats(with_them, size)} ({ends})"
    return f"{moves} · a difference of {nats(with_them - without, size)}, while {held}"


def not_the_share(away: TakenAway, taught: Taught) -> str:
    """Why the test of some answers is not the sum of their shares, as far as these numbers show it."""
    shares = float(taught.shares[away.tokens].sum()) if len(taught.shares) else 0.0
    missing = away.after - away.without
    less = 0 <= missing * shares < shares * shares
    so = "the others make up for part of what is missing" if less else "the push of all others changes as well"
    return (
        "Shares add up; this is a test, the update taken once more without their credit. Adam divides each step by the "
        f"size of the gradients that are left, so {so}."
    )


class Cause(NamedTuple):
    """Tokens that pushed for one reason: what it was, whose answers, and what their shares add up to."""

    what: str
    answers: frozenset[int]
    total: float


def named(taught: Taught, update: Update) -> frozenset[int]:
    """The answers that `sentence` speaks of; none if it names no cause in this update."""
    best = None if _unexplained(taught, "it") else _strongest(taught, update)
    return frozenset() if best is None else best.answers


def sentence(taught: Taught, update: Update, subject: Subject) -> str:
    """What moved the target, in one sentence: the cause that explains most of it, if any does, by its shares."""
    name, net = subject.name, taught.predicted
    if unexplained := _unexplained(taught, name):
        return unexplained
    pushes = _pushes(taught)
    up, down = float(np.maximum(pushes, 0).sum()), float(np.minimum(pushes, 0).sum())
    gross, way = (up, "up") if net > 0 else (down, "down")
    earlier = taught.earlier if taught.earlier * net > 0 else 0.0
    best = _strongest(taught, update)
    what, total = _EARLIER, earlier
    if best is not None and abs(best.total) > abs(earlier):
        what, total = best.what, best.total
    if not total:
        return f"No token of update {update.number} pushed {name} {way}."
    how = "Mostly" if abs(total) >= _MOSTLY * abs(gross) else "Most of all,"
    said = f"{how} {what} pushed {name} {way} ({nats(total, gross)} of {nats(gross, gross)} {way}ward)"
    if what == _EARLIER and best is not None:
        said += f"; in this batch, {best.what.rstrip(',')} ({nats(best.total, gross)})"
    other = down if net > 0 else up
    if abs(other) >= _LITTLE * abs(gross):
        left = ", so little is left" if abs(net) < _LITTLE * abs(gross) else ""
        said += f". Others pushed it {'down' if net > 0 else 'up'} ({nats(other, gross)}){left}"
    return f"{said}."


def _unexplained(taught: Taught, name: str) -> str:
    """Why no cause can be named, in one sentence; empty if one can."""
    net = taught.predicted
    if abs(taught.measured) < _STILL and abs(taught.first_order) < _STILL:
        return f"This update did not move {name}."
    if abs(net - taught.first_order) > _ROUGH * abs(taught.first_order):
        return f"The shares of {name} are too rough to name a cause: see how far their sum is from ∇q·Δθ."
    if taught.measured * net < 0 or not net:
        moves = f"the shares add up to {nats(net, net)}, but {name} moved by {nats(taught.measured, net)}"
        return f"First order does not explain this update: {moves}."
    return _cancelled(taught, name)


def _cancelled(taught: Taught, name: str) -> str:
    """That single shares cannot be trusted because they are huge and cancel; empty if they can.

    Adam divides by the size of the gradient that is left. Where the gradients of tokens cancel but for rounding, that
    makes single shares huge, and rounding decides how huge; docs/teachers.md has figures.
    """
    pushes = _pushes(taught)
    cancel = np.abs(pushes).sum() > _CANCEL * abs(taught.predicted)
    if not (cancel and np.abs(taught.shares).max(initial=0.0) > _HUGE):
        return ""
    up, down = float(np.maximum(pushes, 0).sum()), float(np.minimum(pushes, 0).sum())
    ways = f"{signed(up, 1)} and {signed(down, 1)} nats"
    return f"The pushes on {name} nearly cancel ({ways}): trust only their sum, not single answers."


def _strongest(taught: Taught, update: Update) -> Cause | None:
    """What did most in this update in the direction in which the target was predicted to move."""
    return max(_causes(taught, update, taught.predicted > 0), key=lambda cause: abs(cause.total), default=None)


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
    keys = np.stack([sampled.token_ids[tokens], pull[tokens] > 0], axis=1)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=taught.shares[tokens].astype(np.float64), minlength=len(kinds))
    for kind in np.argsort(-np.abs(totals))[:_CAUSES].tolist():
        found = tokens[which.ravel() == kind]
        found = _alone(found, owners, taught.shares)
        answers = np.unique(owners[found])
        text = quoted(sampled.pieces.get(int(kinds[kind, 0]), sampled.texts[found[0]]))
        ground = f"{'credit for' if kinds[kind, 1] else 'blame on'} {len(answers)} answer{'s' * (len(answers) > 1)}"
        verb = "began with" if np.isin(found, sampled.offsets[:-1]).all() else "wrote"
        near = _nearness(int(same[answers].sum()), len(answers), bool(here[found].all()))
        total = float(taught.shares[found].sum(dtype=np.float64))
        yield Cause(f"the {ground} that {verb} {text}{near}", frozenset(answers.tolist()), total)


def _alone(found: Array, owners: Array, shares: Array) -> Array:
    """Of tokens that pushed the same way, those of one answer if it did nearly all of it; else all."""
    answers, which = np.unique(owners[found], return_inverse=True)
    totals = np.bincount(which.ravel(), weights=np.abs(shares[found].astype(np.float64)), minlength=len(answers))
    return found[which.ravel() == totals.argmax()] if totals.max() >= _ALONE * totals.sum() else found


def _nearness(same: int, answers: int, here: bool) -> str:
    """How many of the answers are to the target's prompt, in words; `here`: all wrote it in the target's place."""
    if here:
        return " here"
    if same == answers:
        return " after this prompt"
    return f", {same} of them to this prompt," if same else ", all to other prompts," if answers > 1 else ""


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
