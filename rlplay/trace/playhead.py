"""A recorded update as it was at any point, for stepping through a finished run.

An update's points count from 1: one for each decoded position, then scored, credited, each iteration of a search for a
step, each optimizer step, and finished. Point 0 is before the update.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from rlplay.trace.records import AnyRecord, Array, Sampled
from rlplay.trace.update import Update

Stride = Literal["token", "step", "phase", "update"]

_FLAT = ("token_ids", "mask", "old_logprobs", "entropy", "top_ids", "top_logprobs")


def length(update: Update) -> int:
    """The number of points in the update."""
    return _positions(update) + len(_later(update))


def at(update: Update, point: int) -> Update:
    """The update as it was at `point`; at the last point, the update itself."""
    if point >= length(update):
        return update
    state = Update(update.number, update.step_word)
    if update.sampled is None or point <= 0:
        return state
    positions = _positions(update)
    state.add(update.sampled if point >= positions else _first(update.sampled, point))
    for record in _later(update)[: max(point - positions, 0)]:
        state.add(record)
    return state


def onward(update: Update, point: int, stride: Stride) -> int:
    """The point after one more token, optimizer step, phase or update, starting at `point`."""
    positions, total = _positions(update), length(update)
    if stride == "update":
        return total
    if stride == "token" and point < positions:
        return point + 1
    if point < positions:
        return positions
    credited = positions + 2
    searched = credited + len(update.searched)
    steps_end = searched + len(update.steps)
    if stride == "phase" and point >= credited and update.steps:
        return min(steps_end if point < steps_end else total, total)
    if stride == "step" and credited <= point < searched:
        return min(searched + 1, total)
    return min(point + 1, total)


def _positions(update: Update) -> int:
    if update.sampled is None:
        return 0
    return int(np.diff(update.sampled.offsets).max(initial=0))


def _later(update: Update) -> list[AnyRecord]:
    known = (update.scored, update.credited, *update.searched, *update.steps, update.finished)
    return [record for record in known if record is not None]


def _first(whole: Sampled, positions: int) -> Sampled:
    lengths = np.diff(whole.offsets)
    kept = np.minimum(lengths, positions)
    starts = whole.offsets[:-1]
    index: Array = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, kept, strict=True)])
    return msgspec.structs.replace(
        whole,
        done=False,
        position=positions,
        offsets=np.concatenate([[0], np.cumsum(kept)]).astype(np.int64),
        texts=[whole.texts[i] for i in index],
        truncated=((lengths > positions) | (whole.truncated == 1)).astype(np.uint8),
        **{name: getattr(whole, name)[index] for name in _FLAT},
    )
