"""A rehearsal has the records that the run would have with those settings, and the run stays where it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.scenario.schema import Stage
from rlplay.trace.records import AnyRecord, Changed, Evaluated, Finished, Notice, Sampled, Staged
from rlplay.trace.rehearsals import Rehearse, Rehearsed
from tests.worlds.value_run import SMALL, Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
FAST = {"learning_rate": 1e-2}
TIMES = ("seconds", "timings")


def never() -> bool:
    return False


def rehearsed(driver: Driver, *changes: dict[str, Any], since: int = 2, updates: int = 2) -> list[Rehearsed]:
    question = Rehearse(since, updates, list(changes), number=7)
    return [each for each in driver.answers(question, never) if isinstance(each, Rehearsed)]


def alike(one: AnyRecord, other: AnyRecord) -> bool:
    """Whether two records are the same, bit for bit, but for how long it took."""
    if type(one) is not type(other):
        return False
    for name in one.__struct_fields__:
        ours, theirs = getattr(one, name), getattr(other, name)
        if name in TIMES:
            continue
        if isinstance(ours, np.ndarray):
            if ours.dtype != theirs.dtype or ours.tobytes() != theirs.tobytes():
                return False
        elif repr(ours) != repr(theirs):
            return False
    return True


def check_alike(some: list[AnyRecord], others: list[AnyRecord]) -> None:
    assert [type(each).__name__ for each in some] == [type(each).__name__ for each in others]
    assert all(alike(one, other) for one, other in zip(some, others, strict=True))


def state_of(driver: Driver) -> list[torch.Tensor]:
    state = driver._state
    every = list(state.parameters.values())
    moments = [state.optimizer.state.get(each, {}) for each in every]
    return [each.detach().clone() for each in (*every, *(each[name] for each in moments for name in sorted(each)))]


def unchanged(driver: Driver, before: list[torch.Tensor]) -> bool:
    return all(torch.equal(one, two) for one, two in zip(before, state_of(driver), strict=True))


RUNS: dict[str, dict[str, Any]] = {
    "grpo": {"num_iterations": 2, "num_minibatches": 2, "eval_every": 2, "beta": 0.1},
    "ppo": {"algorithm": "ppo", "kl_ctrl": "ziegler", "beta": 0.1, "kl_placement": "reward"},
    "dpo": {"algorithm": "dpo", "num_prompts": 4},
    "adapters": {"scenario": {"use_peft": True, "lora_r": 4}},
    "masters": {"scenario": {"dtype": "bfloat16"}, "per_device_train_batch_size": 5},
}


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("given", RUNS.values(), ids=RUNS)
def test_without_a_change_it_is_what_the_run_then_does(start: Start, given: dict[str, Any]) -> None:
    driver, records = start(**FAST | given)
    driver.advance("update", 2, never)
    before, count = state_of(driver), len(records)
    answers = rehearsed(driver, {"learning_rate": 0.1}, {})
    assert [(each.number, each.index, each.update, each.done) for each in answers] == [
        (7, 0, 3, False), (7, 0, 4, False), (7, 1, 3, False), (7, 1, 4, False), (7, 2, 0, True),
    ]  # fmt: skip
    assert not any(each.refused for each in answers)
    assert len(records) == count, "nothing of it is recorded"
    assert unchanged(driver, before)
    assert driver.status().update == 2
    driver.advance("update", 2, never)
    real = [each for each in records[count:] if not isinstance(each, Sampled) or each.done]
    check_alike([record for each in answers[2:4] for record in each.records], real)
    finished = [each for each in answers[2].records if isinstance(each, Finished)]
    assert finished[0].seconds > 0


def test_a_change_is_what_the_run_does_with_it(start: Start) -> None:
    driver, records = start(**FAST, eval_every=1)
    driver.advance("update", 2, never)
    change = {"algorithm": "dapo", "learning_rate": 0.005, "num_generations": 3}
    answers, count = rehearsed(driver, change), len(records)
    driver.set(change)
    driver.advance("update", 2, never)
    real = [each for each in records[count:] if not isinstance(each, Sampled) or each.done]
    mine = [record for each in answers for record in each.records]
    check_alike(mine, real)
    assert any(isinstance(each, Changed) for each in answers[0].records)
    assert any(isinstance(each, Evaluated) and each.update == 4 for each in answers[1].records)


def test_from_an_earlier_update_it_is_what_going_back_there_gives(start: Start) -> None:
    driver, records = start(**FAST)
    driver.advance("update", 1, never)
    driver.set({"beta": 0.1})
    driver.advance("update", 1, never)
    driver.set({"beta": 0.3})
    driver.advance("update", 1, never)
    before = state_of(driver)
    answers = rehearsed(driver, {}, {"epsilon": 0.1}, since=1, updates=1)
    assert unchanged(driver, before)
    assert driver.status().settings.beta == 0.3
    driver.rewind(1)
    count = len(records)
    driver.advance("update", 1, never)
    check_alike(answers[0].records, [each for each in records[count:] if not isinstance(each, Sampled) or each.done])


def test_what_fails_is_refused_in_a_line_and_the_others_go_on(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, records = start(**FAST)
    driver.advance("update", 2, never)
    before, count = state_of(driver), len(records)
    answers = rehearsed(
        driver, {"model": "gpt2"}, {"epsilon": -1}, {"nonsense": 1}, {"returns": "gae", "baseline": "none"},
        {"labeller": "user", "algorithm": "dpo"}, {"learning_rate": 1.0, "temperature": 2.0}, updates=1,
    )  # fmt: skip
    told = {each.index: each.refused for each in answers}
    assert "model cannot change" in told[0]
    assert "epsilon" in told[1]
    assert "nonsense" in told[2]
    assert "baseline=value" in told[3]
    assert "labeller=gold" in told[4]
    assert told[5] == ""
    assert not any("\n" in each for each in told.values())
    assert answers[-1].done
    assert unchanged(driver, before)
    assert len(records) == count


def test_an_update_that_halts_ends_its_rehearsal_alone(start: Start) -> None:
    driver, records = start(**FAST)
    driver.advance("update", 2, never)
    before = state_of(driver)
    answers = rehearsed(driver, {"learning_rate": 1.0, "max_grad_norm": 0.0, "reward_weights": {"uneven": 1e300}}, {})
    assert answers[0].refused
    assert answers[0].update == 3
    assert [each.update for each in answers[1:]] == [3, 4, 0]
    assert unchanged(driver, before)
    driver.advance("update", 1, never)
    assert not [each for each in records if isinstance(each, Notice) and each.level == "error"]


@pytest.mark.parametrize("after", [0, 3, 60])
def test_another_command_ends_it_and_the_run_is_where_it_was(start: Start, after: int) -> None:
    driver, _ = start(**FAST)
    driver.advance("update", 2, never)
    before, asks = state_of(driver), iter([False] * after + [True] * 999)
    answers = list(driver.answers(Rehearse(2, 3, [{"beta": 0.2}, {}]), lambda: next(asks)))
    assert isinstance(answers[-1], Rehearsed)
    assert answers[-1].done
    assert len(answers) < 7
    assert unchanged(driver, before)
    assert driver.status().settings.beta == 0.0
    driver.advance("update", 1, never)
    assert driver.status().update == 3


def test_where_there_is_nothing_to_rehearse_from_it_is_refused(start: Start) -> None:
    driver, _ = start()
    driver.advance("update", 1, never)
    for since, updates, why in ((2, 1, "not finished"), (-1, 1, "not finished"), (1, 0, "1 update or more")):
        with pytest.raises(ValueError, match=why):
            rehearsed(driver, {}, since=since, updates=updates)
    driver.advance("phase", 1, never)
    with pytest.raises(ValueError, match="under way"):
        rehearsed(driver, {}, since=1)


def test_a_stage_that_begins_in_a_rehearsal_begins_there_alone(start: Start, tmp_path: Path) -> None:
    stages = [Stage("one", 2), Stage("two", 2, settings={"learning_rate": 0.02})]
    driver, records = start(scenario={"stages": stages}, **FAST)
    driver.advance("update", 1, never)
    before, count, kept = state_of(driver), len(records), driver._store.kept()
    (one, two, _) = rehearsed(driver, {}, since=1, updates=2)
    assert unchanged(driver, before)
    assert driver._store.kept() == kept
    assert len(records) == count
    driver.advance("update", 2, never)
    real = [each for each in records[count:] if not isinstance(each, Sampled) or each.done]
    check_alike(one.records + two.records, real)
    assert isinstance(two.records[0], Staged)


def test_a_world_keeps_its_squares(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"algorithm": "reinforce"}).go(1)
    state = run.driver._state
    task, painted = state.task, state.painted
    answers = rehearsed(run.driver, {"squares": {"b2": 5.0}}, {"exploration_rate": 0.9}, since=1, updates=1)
    assert not any(each.refused for each in answers)
    assert state.task is task
    assert state.painted is painted
