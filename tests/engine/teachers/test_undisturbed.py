"""Who asks who taught a token changes nothing, whenever they ask and whatever goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.engine.snapshots import SnapshotStore
from rlplay.trace.records import Stepped
from rlplay.trace.teachers import Target, Teach
from tests.engine.teachers.asking import Start, never, targets_of, taught
from tests.numbers import update_of

MOVING: dict[str, Any] = {"num_iterations": 2, "beta": 0.1, "learning_rate": 1e-2}


def everything(driver: Driver) -> dict[str, torch.Tensor]:
    """All numbers of the state, copied."""
    state = driver._state
    found = {name: parameter.detach().clone() for name, parameter in state.parameters.items()}
    for name, parameter in state.parameters.items():
        found |= {f"{key}/{name}": v.clone() for key, v in state.optimizer.state.get(parameter, {}).items()}
    found |= {f"reference.{name}": p.detach().clone() for name, p in state.lm.reference.named_parameters()}
    return found


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(("until", "count"), [("update", 2), ("phase", 12), ("step", 5), ("token", 40)])
def test_the_run_goes_on_as_if_nobody_had_asked(start: Start, until: Any, count: int) -> None:
    asked, told = start(run="asked.rlplay", **MOVING)
    other, untold = start(run="other.rlplay", **MOVING)
    for driver in (asked, other):
        driver.advance(until, count, never)
    before = everything(asked)
    for target in targets_of(update_of(told, 1))[1:3]:
        taught(asked, target, asked.status().update)
    assert same(everything(asked), before)
    for driver in (asked, other):
        driver.advance("update", 1, never)
    assert same(everything(asked), everything(other))
    ours, theirs = ([r for r in records if isinstance(r, Stepped)] for records in (told, untold))
    assert [step.step for step in ours] == [step.step for step in theirs]
    assert all(np.array_equal(one.logprobs, two.logprobs) for one, two in zip(ours, theirs, strict=True))


def test_within_an_update_it_is_asked_of_the_last_one(start: Start) -> None:
    driver, records = start(**MOVING)
    driver.advance("update", 2, never)
    target = targets_of(update_of(records, 2))[0]
    expected = taught(driver, target, 2)
    found = list[Any]()

    def ask() -> bool:
        if len(found) < 5:
            found.append(taught(driver, target, 2))
        return False

    driver.advance("update", 1, ask)
    assert len(found) == 5
    assert all(np.array_equal(each.shares, expected.shares) and each.after == expected.after for each in found)


def test_without_snapshots_the_updates_are_repeated(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, records = start(run="kept.rlplay", **MOVING)
    kept.advance("update", 3, never)
    target = targets_of(update_of(records, 2))[1]
    expected = taught(kept, target, 2)
    monkeypatch.setattr(SnapshotStore, "_is_due", lambda *_: False)
    driver, _ = start(run="bare.rlplay", **MOVING)
    driver.advance("update", 3, never)
    before, found = everything(driver), taught(driver, target, 2)
    assert driver._store.kept() == []
    np.testing.assert_allclose(found.shares, expected.shares, atol=1e-6)
    assert found.earlier == pytest.approx(expected.earlier, rel=1e-4)
    assert same(everything(driver), before)


@pytest.mark.parametrize("patience", [0, 1, 2, 3])
def test_another_question_ends_it(start: Start, patience: int) -> None:
    driver, records = start(**MOVING)
    driver.advance("update", 2, never)
    before, asked = everything(driver), list[int]()

    def interrupted() -> bool:
        asked.append(0)
        return len(asked) > patience

    with pytest.raises(ValueError, match="another command"):
        list(driver.answers(Teach(targets_of(update_of(records, 2))[0], 2, 2), interrupted))
    assert same(everything(driver), before)


def test_memory_that_is_short_is_said_in_a_line(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, records = start(**MOVING)
    driver.advance("update", 2, never)
    before = everything(driver)

    def full(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("rlplay.engine.teachers.shares.along", full)
    with pytest.raises(ValueError, match="memory is short") as told:
        taught(driver, targets_of(update_of(records, 2))[0], 2)
    assert "\n" not in str(told.value)
    assert same(everything(driver), before)


REFUSED: list[tuple[Callable[[Target], Teach], str]] = [
    (lambda target: Teach(target, 3, 3), "not finished"),
    (lambda target: Teach(target, 2, 0), "cannot have moved"),
    (lambda target: Teach(target, 1, 2), "cannot have moved"),
    (lambda target: Teach(Target(target.prompt_ids, [10**9], [0]), 2, 2), "outside"),
    (lambda target: Teach(Target(target.prompt_ids, [5], []), 2, 2), "places"),
]


@pytest.mark.parametrize(("question", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_be_asked_says_why(start: Start, question: Callable[[Target], Teach], why: str) -> None:
    driver, records = start()
    driver.advance("update", 2, never)
    with pytest.raises(ValueError, match=why):
        list(driver.answers(question(targets_of(update_of(records, 2))[0]), never))


@pytest.mark.parametrize(
    ("given", "why"),
    [({"algorithm": "trpo"}, "TRPO"), ({"algorithm": "reward-model"}, "reward model")],
)
def test_losses_without_shares_are_refused(start: Start, opinionated: None, given: dict[str, Any], why: str) -> None:
    driver, records = start(**given)
    driver.advance("update", 1, never)
    with pytest.raises(ValueError, match=why):
        taught(driver, targets_of(update_of(records, 1))[0], 1)
