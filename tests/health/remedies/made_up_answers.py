"""Answers of an engine that rehearses: made-up updates whose answers are all cut, or none."""

from __future__ import annotations

import msgspec
import numpy as np

from rlplay.health.finding import Evidence, Finding
from rlplay.health.remedies.outcome import Rehearsal
from rlplay.health.remedies.remedy import Remedy, Trial
from rlplay.trace.records import AnyRecord, Sampled
from rlplay.trace.rehearsals import Rehearsed
from tests.health.evidence import evidence
from tests.recorded import synthetic_update

SINCE, UPDATES = 4, 3
FOUND = Finding("truncated", "Many answers are cut", "", "", "", ("max_completion_length",))


def records(number: int, cut: float, seed: int = 0) -> list[AnyRecord]:
    """An update of which that share of the answers is cut."""
    return [_cut(each, cut) if isinstance(each, Sampled) else each for each in synthetic_update(number, seed)]


def _cut(sampled: Sampled, share: float) -> Sampled:
    count = len(sampled.group)
    return msgspec.structs.replace(sampled, truncated=(np.arange(count) < share * count).astype(np.uint8))


def answers(index: int, cut: list[float], seed: int = 0) -> list[Rehearsed]:
    """What the engine says of a branch whose updates have these shares of cut answers."""
    return [Rehearsed(0, index, SINCE + n, records=records(SINCE + n, each, seed)) for n, each in enumerate(cut, 1)]


def rehearsal(*others: list[Rehearsed], run: Evidence | None = None, lengths: tuple[int, ...] = (24,)) -> Rehearsal:
    """The unchanged run, all of whose answers are cut, and other branches."""
    remedies = tuple(Remedy(f"up to {n} tokens", {"max_completion_length": n}) for n in lengths)
    made = Rehearsal(Trial(FOUND, SINCE, UPDATES, "from there", remedies), run or evidence())
    for answer in [*answers(0, [1.0] * UPDATES), *(each for some in others for each in some)]:
        made.take(answer)
    return made
