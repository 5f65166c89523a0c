"""The health of a long run keeps a bounded number of digests, and how each stage began."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec

from rlplay.health.health_of_run import FIRST, LAST, MOST, Health, UpdateDigest, examine_run, undone
from rlplay.trace.records import Staged
from rlplay.trace.run import Run
from rlplay.trace.runfile import RunWriter
from rlplay.trace.update import Update
from tests.health.evidence import digest_of
from tests.recorded import SETTINGS, synthetic_started, synthetic_update

LONG, BORDER = 1500, 700
STATED = msgspec.structs.asdict(SETTINGS)


def test_the_newest_updates_and_the_beginning_of_each_stage_stay_known() -> None:
    run = Run()
    run.add(Staged(update=1, index=0, stages=2, name="a", settings={}))
    run.add(Staged(update=BORDER + 1, index=1, stages=2, name="b", settings={}))
    health = Health(run)
    for number in range(1, LONG + 1):
        health.keep(UpdateDigest(number, ("done", 1), digest_of(number)))
    known = [n for n in range(1, LONG + 1) if health.knows(n)]
    assert MOST / 2 < len(known) <= MOST
    assert known[:FIRST] == [1, 2, 3, 4, 5]
    assert [n for n in known if n > BORDER][:FIRST] == [BORDER + n for n in range(1, FIRST + 1)]
    assert known[-LAST:] == list(range(LONG - LAST + 1, LONG + 1))
    assert max(b - a for a, b in pairwise(known)) < LONG / 10, "some of all times"
    found = health.evidence(LONG, STATED)
    assert found is not None
    assert [each.update for each in found.digests] == [n for n in known if n >= found.first]


def taken(updates: int, *stages: int) -> Health:
    """The health of a run with so many updates, whose stages began at these."""
    health = Health(Run())
    for index, begun in enumerate(stages):
        health.run.add(Staged(update=begun, index=index, stages=len(stages), name=f"stage {index}", settings={}))
    for number in range(1, updates + 1):
        health.keep(UpdateDigest(number, ("done", 1), digest_of(number)))
    return health


def test_every_second_update_goes_once_there_are_too_many() -> None:
    most = taken(MOST)
    known = [n for n in range(1, MOST + 1) if most.knows(n)]
    assert known == list(range(1, MOST + 1))
    more = taken(MOST + 1)
    middle = range(FIRST + 1, MOST + 2 - LAST)
    left = [n for n in range(1, MOST + 2) if more.knows(n)]
    assert left == [*range(1, FIRST + 1), *middle[1::2], *range(MOST + 2 - LAST, MOST + 2)]


def test_a_run_is_examined_since_its_stage_began() -> None:
    for stages, last, first in (
        ((), 3, 0),
        ((1, 3), 2, 0),
        ((1, 3), 3, 3),
        ((1, 3), 5, 3),
        ((1, 3, 5), 4, 3),
        ((1, 3, 5), 5, 5),
    ):
        run = taken(5, *stages).evidence(last, STATED)
        assert run is not None
        assert (run.first, run.last) == (first, last)
        assert [each.update for each in run.digests] == list(range(max(first, 1), last + 1))
    assert Health(Run()).evidence(3, STATED) is None


def test_an_update_is_taken_anew_once_it_has_come_further() -> None:
    health, update = Health(Run()), Update(1)
    health.add(update)
    assert health.evidence(1, STATED) is None
    assert health.findings(1, STATED) == []
    for record in synthetic_update(1):
        update.add(record)
        assert not health.holds(update)
        health.add(update)
        assert health.holds(update)
        assert health.knows(1) == (update.finished is not None)
    health.keep(UpdateDigest(2, ("done", 1), digest_of(2, broken=("logprobs",))))
    assert health.findings(2, STATED)


def test_a_run_that_has_finished_nothing_has_nothing_undone(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "a.rlplay", synthetic_started())
    writer.append(synthetic_update(1)[0])
    assert undone(tmp_path / "a.rlplay") == 0
    writer.close()
    assert examine_run(tmp_path / "a.rlplay") == (None, [])
