"""The whole run as moves of a target: each is what the question about that update says."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rlplay.engine.driver import Driver
from rlplay.engine.snapshots import SnapshotStore
from rlplay.trace.teachers import Target, TaughtCourse, TeachCourse
from tests.engine.teachers.asking import Start, in_float64, never, targets_of, taught
from tests.engine.teachers.test_undisturbed import everything, same
from tests.numbers import update_of


def course(driver: Driver, target: Target, interrupted: Any = never) -> list[TaughtCourse]:
    return [a for a in driver.answers(TeachCourse(target), interrupted) if isinstance(a, TaughtCourse)]


def test_each_move_is_what_the_update_says(start: Start) -> None:
    driver, records = start(architecture="gpt2", algorithm="grpo", weight_decay=0.2)
    in_float64(driver)
    driver.advance("update", 3, never)
    before, target = everything(driver), targets_of(update_of(records, 2))[1]
    answers = course(driver, target)
    assert [len(answer.moves) for answer in answers] == [1, 2, 3, 3]
    assert [answer.done for answer in answers] == [False, False, False, True]
    moves = answers[-1].moves
    assert [(move.since, move.update) for move in moves] == [(0, 1), (1, 2), (2, 3)]
    for move in moves:
        found = taught(driver, target, move.update)
        assert move.measured == pytest.approx(found.measured, abs=1e-9)
        assert move.after == pytest.approx(found.after, abs=1e-9)
        assert move.earlier == pytest.approx(found.earlier, abs=1e-9)
        assert move.rest == pytest.approx(found.rest["weight decay"], abs=1e-9)
        assert move.batch == pytest.approx(found.batch, rel=1e-5, abs=1e-8)
    assert same(everything(driver), before)


@pytest.mark.parametrize("given", [{"num_iterations": 3}, {"dtype": "bfloat16"}, {"use_peft": True, "lora_r": 2}])
def test_a_move_of_several_steps_is_about_what_the_update_says(start: Start, given: dict[str, Any]) -> None:
    scenario = {name: value for name, value in given.items() if name != "num_iterations"}
    settings = {name: value for name, value in given.items() if name not in scenario}
    driver, records = start(algorithm="grpo", scenario=scenario, learning_rate=3e-4, **settings)
    driver.advance("update", 3, never)
    target = targets_of(update_of(records, 3))[3]
    moves = course(driver, target)[-1].moves
    for move in moves:
        found = taught(driver, target, move.update)
        assert move.measured == pytest.approx(found.measured, abs=1e-5)
        assert move.earlier == pytest.approx(found.earlier, rel=0.1, abs=1e-3)
        assert move.batch + move.earlier + move.rest == pytest.approx(found.first_order, rel=0.1, abs=2e-3)


def test_where_weights_are_missing_a_move_spans_updates(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    due = SnapshotStore._is_due
    but_2 = lambda self, update, always: update != 2 and due(self, update, always)  # noqa: E731
    monkeypatch.setattr(SnapshotStore, "_is_due", but_2)
    driver, records = start(learning_rate=1e-4)
    driver.advance("update", 4, never)
    moves = course(driver, targets_of(update_of(records, 4))[3])[-1].moves
    assert [(move.since, move.update) for move in moves] == [(0, 1), (1, 3), (3, 4)]
    for before, after in pairwise(moves):
        assert after.after - before.after == pytest.approx(after.measured)
    wide = moves[1]
    assert wide.batch + wide.earlier == pytest.approx(wide.measured, rel=0.3)


def test_it_ends_with_the_next_command(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 3, never)
    asked = list[int]()

    def interrupted() -> bool:
        asked.append(0)
        return len(asked) > 3

    answers = course(driver, targets_of(update_of(records, 2))[0], interrupted)
    assert [(len(answer.moves), answer.done) for answer in answers] == [(1, False), (2, False), (2, True)]
    assert np.isfinite([move.batch for move in answers[-1].moves]).all()
