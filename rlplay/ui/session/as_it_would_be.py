"""An update as trained and as it would be with changed settings: two updates to draw, and their differences."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from rlplay.trace.numbers import number
from rlplay.trace.questions import Imagined
from rlplay.trace.records import Array, Stepped
from rlplay.trace.update import Update

_NOTHING = 1e-5
"""A gradient up to this share of the largest is rounding noise."""


@dataclass(frozen=True)
class WhatIfResult:
    """`before` and `after` hold one optimizer step for each token, at the same log-probabilities."""

    before: Update
    after: Update
    flipped: Array
    """bool [T], the tokens whose gradient would change sign."""
    words: list[str]
    """The differences, in a few short lines."""


def what_if_result(update: Update, imagined: Imagined) -> WhatIfResult:
    """The engine's preview for `update`, which must be the previewed one and have credit."""
    assert update.sampled is not None
    assert update.credited is not None
    assert imagined.credited is not None
    before, after = _like(update, imagined.before), _like(update, imagined.after)
    before.credited = update.credited
    kept = {name: getattr(update.credited, name) for name in ("ref_logprobs", "ref_top_logprobs")}
    after.credited = msgspec.structs.replace(imagined.credited, **kept)
    sampled = update.sampled.mask == 1
    gradients = _gradients(before)[sampled], _gradients(after)[sampled]
    flipped = np.zeros(update.tokens, dtype=bool)
    flipped[sampled] = gradients[0] * gradients[1] < 0
    return WhatIfResult(
        before,
        after,
        flipped,
        _words(gradients, _clips(before)[sampled], _clips(after)[sampled], imagined, update.step_word),
    )


def _like(update: Update, steps: list[Stepped]) -> Update:
    other = Update(update.number, update.step_word)
    other.sampled, other.scored, other.steps = update.sampled, update.scored, steps
    return other


def _gradients(update: Update) -> Array:
    """∂L/∂ℓ of every token, with rounding noise set to 0."""
    gradients = update.latest_step("dloss_dlogp")
    assert gradients is not None
    return np.where(np.abs(gradients) > _NOTHING * np.abs(gradients).max(initial=0.0), gradients, 0.0)


def _clips(update: Update) -> Array:
    clips = update.latest_step("clip_state")
    assert clips is not None
    return np.asarray(clips != 0)


def _words(gradients: tuple[Array, Array], was: Array, will: Array, imagined: Imagined, word: str) -> list[str]:
    old, new = gradients
    noise = _NOTHING * np.abs(old).max(initial=0.0)
    counts = [
        (int(((old * new) < 0).sum()), "get a reversed gradient (±)"),
        (int((was & ~will).sum()), "no longer be clipped"),
        (int((will & ~was).sum()), "be clipped"),
        (int(((old != 0) & (new == 0) & ~(will & ~was)).sum()), "no longer get a gradient"),
        (int(((old == 0) & (new != 0) & ~(was & ~will)).sum()), "newly get a gradient"),
        (int(((old * new > 0) & (np.abs(new) - np.abs(old) > noise)).sum()), "get a larger gradient"),
        (int(((old * new > 0) & (np.abs(old) - np.abs(new) > noise)).sum()), "get a smaller gradient"),
    ]
    listed = ", ".join(f"{count:,} would {what}" for count, what in counts if count)
    lines = [f"Of these {len(old):,} {word}s, {listed or 'none would get a different gradient'}."]
    if imagined.losses is not None:
        strength = f"{number(float(np.abs(old).sum()))} → {number(float(np.abs(new).sum()))}"
        lines.append(f"Σ|∂L/∂ℓ| {strength} · L {' → '.join(number(loss) for loss in imagined.losses)}")
    return [*lines, held_back(imagined.held)] if imagined.held else lines


def held_back(names: list[str]) -> str:
    """A sentence about changed settings that a preview leaves as they were, because they act later."""
    leave, act = ("leaves", "acts") if len(names) == 1 else ("leave", "act")
    return f"{', '.join(names)} {leave} these gradients as they are and {act} after them."
