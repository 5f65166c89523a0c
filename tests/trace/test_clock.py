"""Which steps of its own trainer the updates of a run are."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from rlplay.trace.clock import FIRST, LAST, Clock, Steps, check_steps
from rlplay.trace.history import History
from rlplay.trace.records import Finished, Rewound
from rlplay.trace.runfile import RunReader, RunWriter
from tests.recorded import synthetic_started, synthetic_update


def ticked(*steps: Steps) -> Clock:
    """A clock of updates from 1 on."""
    clock = Clock()
    for update, each in enumerate(steps, 1):
        clock.put(update, each)
    return clock


def test_a_step_finds_its_update_and_an_update_its_steps() -> None:
    clock = ticked((1, 2), (3, 4), (7, 7))
    assert [clock.update_at(step) for step in range(9)] == [1, 1, 1, 2, 2, 3, 3, 3, None]
    assert [clock.steps(update) for update in range(5)] == [None, (1, 2), (3, 4), (7, 7), None]


def test_a_trainer_that_counts_as_rlplay_does_has_no_other_numbers() -> None:
    assert not ticked((1, 1), (2, 2)).differs
    assert ticked((1, 1), (2, 3)).differs
    assert ticked((0, 0), (1, 1)).differs
    clock = ticked((1, 1), (2, 3))
    clock.cut(1)
    assert not clock.differs


def test_going_back_takes_the_steps_of_later_updates_away() -> None:
    history = History()
    for number in (1, 2, 3):
        history.add(finished(number, (2 * number - 1, 2 * number)))
    history.add(Rewound(update=1, abandoned=3))
    assert history.clock.steps(2) is None
    history.add(finished(2, (8, 9)))
    assert history.clock.update_at(5) == 2


def test_what_is_no_step_is_left_out() -> None:
    clock = Clock.of(([1, 2, 3, 4, 5], [1.0, math.nan, -1.0, 5.0, 9.0]), ([1, 2, 3, 4], [2.0, 3.0, 4.0, math.inf]))
    assert [clock.steps(update) for update in range(1, 6)] == [(1, 2), None, None, None, None]
    for wrong in ((2, 1), (-1, 1), (0, 2**60)):
        with pytest.raises(ValueError, match="trainer_steps"):
            check_steps(wrong)


def test_a_run_file_keeps_the_steps_apart_from_its_metrics(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "a.rlplay", synthetic_started())
    for number in (1, 2, 3):
        for record in synthetic_update(number)[:-1]:
            writer.append(record)
        writer.append(finished(number, (2 * number - 1, 2 * number)))
    writer.append(Rewound(update=2, abandoned=3))
    writer.close()
    with RunReader(tmp_path / "a.rlplay") as reader:
        history = reader.history()
        assert [history.clock.steps(update) for update in (1, 2, 3)] == [(1, 2), (3, 4), None]
        assert not {FIRST, LAST} & {*history.names(), *dict(reader.metrics())[1]}
        found = reader.load(2).finished
        assert found is not None
        assert found.trainer_steps == (3, 4)


def finished(number: int, steps: Steps) -> Finished:
    """The end of an update that is these steps of its trainer."""
    record = synthetic_update(number)[-1]
    assert isinstance(record, Finished)
    return msgspec.structs.replace(record, trainer_steps=steps)
