"""A made-up engine's answers to a `Rehearse`: with the run's settings most answers are cut, and with others fewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from rlplay.trace.records import AnyRecord, Finished, Sampled
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from tests.recorded import synthetic_update


def cut(number: int, count: int = 9) -> list[AnyRecord]:
    """The records of an update of which `count` of 16 answers were cut."""
    short = np.array([1] * count + [0] * (16 - count), dtype=np.uint8)
    share = {"completions/clipped_ratio": count / 16, "kl": 0.002 * number}

    def changed(record: AnyRecord) -> AnyRecord:
        match record:
            case Sampled():
                return msgspec.structs.replace(record, truncated=short)
            case Finished():
                return msgspec.structs.replace(record, metrics=record.metrics | share)
        return record

    return [changed(record) for record in synthetic_update(number)]


def cuts(changes: Mapping[str, Any], at: int) -> int:
    """How many of 16 answers are cut in update `at` of a rehearsal."""
    length = changes.get("max_completion_length", 0)
    return max(9 - at * length // 24, 0) if length else 9 + at % 2


def answers(question: Rehearse) -> Iterator[Rehearsed]:
    """One for each update of each candidate; settings that do not fit are refused."""
    last = len(question.changes) - 1
    for index, changes in enumerate(question.changes):
        if changes.get("temperature") == 0.05:
            yield Rehearsed(question.number, index, refused="out of memory", done=index == last)
            continue
        for at in range(1, question.updates + 1):
            records = cut(question.since + at, cuts(changes, at))
            over = index == last and at == question.updates
            yield Rehearsed(question.number, index, question.since + at, records=records, done=over)
