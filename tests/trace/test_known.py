"""What is known of updates, where some records arrive and others have to be read."""

from __future__ import annotations

import msgspec
import numpy as np

from rlplay.trace.known import MOST, Known
from rlplay.trace.records import AnyRecord, Evaluated
from rlplay.trace.run import Run
from tests.recorded import synthetic_evaluated


class Numbers(Known[int]):
    """Keeps the update of every evaluation."""

    def add(self, record: AnyRecord) -> None:
        if isinstance(record, Evaluated):
            self._keep(record.update, record.update)

    @property
    def known(self) -> list[int]:
        return sorted(self._kept)


def evaluated(update: int) -> Evaluated:
    return msgspec.structs.replace(synthetic_evaluated(1), update=update)


def test_records_are_read_once_and_those_that_are_gone_are_dropped() -> None:
    numbers = Numbers()
    assert not numbers.stale
    numbers.stale = True
    numbers.add(evaluated(5))
    numbers.expect([0, 5, 10])
    assert (numbers.missing, numbers.stale) == ([0, 10], False)
    numbers.take(0, evaluated(0))
    numbers.take(10, None)
    assert (numbers.missing, numbers.known) == ([], [0, 5])
    numbers.take(20, evaluated(15))  # the newest one before, because that of update 20 was not kept
    assert numbers.known == [0, 5]
    numbers.expect([5, 10])
    assert (numbers.missing, numbers.known) == ([10], [5])


def test_going_back_drops_what_is_known_and_what_is_missing() -> None:
    run = Run()
    numbers = Numbers(run.by_update)
    for update in (0, 5, 15):
        numbers.add(evaluated(update))
    numbers.expect([0, 5, 10, 15, 20])
    run.go_back(10)
    assert (numbers.missing, numbers.known) == ([10], [0, 5])


def test_whatever_changes_what_is_known_is_a_new_version() -> None:
    run = Run()
    numbers = Numbers(run.by_update)
    versions = [numbers.version]
    for change in (
        lambda: numbers.expect([1, 2]),
        lambda: numbers.take(1, None),
        lambda: numbers.take(2, evaluated(2)),
        lambda: numbers.add(evaluated(3)),
        lambda: numbers.add(evaluated(3)),
        lambda: numbers.expect([2, 3, 4]),
        lambda: run.go_back(3),
        lambda: run.go_back(2),
        lambda: numbers.add(evaluated(3)),
    ):
        change()
        versions.append(numbers.version)
    assert len(set(versions)) == len(versions)


def test_of_a_long_run_some_updates_its_first_and_its_last_are_kept_or_read() -> None:
    numbers = Numbers()
    for update in range(3 * MOST):
        numbers.add(evaluated(update))
        assert len(numbers.known) <= 2 * MOST
    assert (numbers.known[0], numbers.known[-1]) == (0, 3 * MOST - 1)
    assert max(np.diff(numbers.known)) <= 2
    unread = Numbers()
    unread.expect(range(10 * MOST))
    assert MOST <= len(unread.missing) <= MOST + 1
    assert (unread.missing[0], unread.missing[-1]) == (0, 10 * MOST - 1)
