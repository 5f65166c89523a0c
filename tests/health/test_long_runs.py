"""The health of a long run keeps a bounded number of digests, and how each stage began."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from rlplay.health.health_of_run import FIRST, LAST, MOST, Health
from rlplay.trace.records import Staged
from rlplay.trace.run import Run
from rlplay.trace.update import Update
from tests.recorded import synthetic_update

LONG, BORDER = 1500, 700


def test_the_newest_updates_and_the_beginning_of_each_stage_stay_known() -> None:
    run = Run()
    run.add(Staged(update=1, index=0, stages=2, name="a", settings={}))
    run.add(Staged(update=BORDER + 1, index=1, stages=2, name="b", settings={}))
    health, records = Health(run), synthetic_update(1, prompts=1, generations=2, length=4)
    for number in range(1, LONG + 1):
        update = Update(number)
        for record in records:
            update.add(msgspec.structs.replace(record, update=number))
        health.add(update)
    known = [n for n in range(1, LONG + 1) if health.knows(n)]
    assert MOST / 2 < len(known) <= MOST
    assert known[:FIRST] == [1, 2, 3, 4, 5]
    assert [n for n in known if n > BORDER][:FIRST] == [BORDER + n for n in range(1, FIRST + 1)]
    assert known[-LAST:] == list(range(LONG - LAST + 1, LONG + 1))
    assert max(b - a for a, b in pairwise(known)) < LONG / 10, "some of all times"
    found = health.evidence(LONG, {})
    assert found is not None
    assert [each.update for each in found.digests] == [n for n in known if n >= found.first]
