"""Rewards with TRL 1.16's whole signature: what they are given, what they log, asynchronous ones, those of modules."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.containment import OwnError
from rlplay.engine.driver import Driver
from rlplay.engine.state import Halt
from rlplay.export.completion_rows import rows
from rlplay.tasks.own_rewards import load_reward
from rlplay.tasks.task import Example
from rlplay.trace.answers import measures
from rlplay.trace.records import AnyRecord, Evaluated, Finished, Scored
from rlplay.trace.update import Update
from tests.engine.test_more_axes import records_of

pytestmark = pytest.mark.usefixtures("trusts_all")

Start = Callable[..., tuple[Driver, list[AnyRecord]]]


def played(start: Start, function: Callable[..., Any], updates: int = 1, **settings: Any) -> list[AnyRecord]:
    """The records of some updates with the reward `function`."""
    driver, records = start(**settings)
    driver._state.task.rewards["uneven"] = function
    try:
        driver.advance("update", updates, lambda: False)
    finally:
        driver.close()
    return list(records)


def scored(records: list[AnyRecord]) -> Scored:
    return records_of(Scored, records)[0]


def test_a_reward_is_told_how_far_the_training_is(start: Start) -> None:
    seen = []

    def reward(completions: list[Any], trainer_state: Any) -> list[float]:
        seen.append((trainer_state.global_step, trainer_state.max_steps, trainer_state.epoch))
        return [1.0] * len(completions)

    driver, _ = start()
    prompts = len(driver._state.task.train)
    driver.close()
    played(start, reward, updates=2, run="two.rlplay", num_iterations=2, num_minibatches=3)
    assert seen == [(0, 24, 0.0), (6, 24, pytest.approx(3 / prompts))], "4 updates of 6 optimizer steps each"


def test_a_reward_that_switches_gradients_off_leaves_them_on(start: Start) -> None:
    def reward(completion_ids: list[list[int]]) -> list[float]:
        torch.set_grad_enabled(False)
        return [float(len(ids)) for ids in completion_ids]

    assert records_of(Finished, played(start, reward))


def test_a_column_of_other_prompts_alone_is_none_for_these(start: Start) -> None:
    seen: list[Any] = []

    def reward(completions: list[Any], hint: list[Any]) -> list[float]:
        seen.extend(hint)
        return [1.0] * len(completions)

    driver, _ = start(run="rare.rlplay", num_prompts=1)
    driver._state.task.rewards["uneven"] = reward
    driver._state.task.held_out.append(Example("1+1=", {"hint": "two"}))
    driver.advance("phase", 2, lambda: False)
    driver.close()
    assert set(seen) == {None}


def test_columns_and_metrics_that_a_reward_logs(start: Start) -> None:
    def reward(completion_ids: list[list[int]], log_extra: Any, log_metric: Any) -> list[float]:
        lengths = np.array([len(ids) for ids in completion_ids])
        log_extra("tokens", list(lengths))
        log_extra("first", [str(ids[0]) for ids in completion_ids])
        log_metric("longest", lengths.max())
        log_metric("longest", lengths.max() + 2)
        log_metric("unknown", float("nan"))
        return [float(n % 2) for n in lengths]

    records = played(start, reward, eval_every=1)
    found, finished = scored(records), records_of(Finished, records)[0]
    sampled = next(r for r in records if type(r).__name__ == "Sampled" and r.done)
    lengths = np.diff(sampled.offsets)
    assert found.extra["tokens"] == lengths.tolist()
    assert finished.metrics["longest"] == lengths.max() + 1
    assert "unknown" not in finished.metrics
    assert records_of(Evaluated, records)[0].metrics["eval_longest"] > 1
    update = Update(1)
    update.add(sampled)
    update.add(found)
    assert measures(update)["tokens"].tolist() == lengths.tolist()
    assert "first" not in measures(update)
    assert [row["extra"]["first"] for row in rows(update)] == found.extra["first"]


def test_what_is_logged_stays_with_its_answers_where_groups_are_replaced(start: Start) -> None:
    def seldom(completion_ids: list[list[int]], log_extra: Any, log_metric: Any) -> list[float]:
        log_extra("sum", [sum(ids) for ids in completion_ids])
        log_metric("called", 1.0)
        return [float(sum(ids) % 7 == 0) for ids in completion_ids]

    records = played(start, seldom, dynamic_sampling=True)
    found = scored(records)
    assert records_of(Finished, records)[0].metrics["dynamic_sampling/dropped_groups"] > 0, "else nothing is tried"
    assert [float(total % 7 == 0) for total in found.extra["sum"]] == found.rewards.tolist()
    assert found.logged == {"called": 1.0}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('log_extra("a", [1])', "log_extra 'a' has 1 values; give one for each of 12 answers"),
        ('log_extra("a", [object()] * 12)', "log_extra 'a' has a value of the type object, which cannot be recorded"),
        ('log_metric("kl", 1.0)', "log_metric 'kl': the training has a metric of this name; choose another"),
        ('log_metric("nll", 1.0)', "log_metric 'nll': the training has a metric of this name; choose another"),
        ('log_metric("mine", "high")', "log_metric 'mine' takes a number; got 'high'"),
    ],
)
def test_what_cannot_be_logged_is_refused_with_its_line(start: Start, tmp_path: Path, body: str, words: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"def f(completions, log_extra, log_metric):\n    {body}\n    return [0.0] * len(completions)\n")
    with pytest.raises(Halt) as halted:
        played(start, load_reward(f"{path}:f"))
    assert str(halted.value).startswith(f"reward function 'uneven' failed: {path}:2: ValueError: {words}")
    assert "\n" not in str(halted.value)


ASYNC = """
import asyncio

loops = []

async def f(completions, answer):
    loops.append(asyncio.get_running_loop())
    await asyncio.sleep(0)
    assert all(loop is loops[0] for loop in loops)
    return [float(right % 2) for right in answer]

async def broken(completions):
    await asyncio.sleep(0)
    return [1 / 0 for _ in completions]
"""


def test_an_asynchronous_reward(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ASYNC)
    reward = load_reward(f"{tmp_path / 'own.py'}:f")
    records = played(start, reward, updates=2)
    sampled = next(r for r in records if type(r).__name__ == "Sampled" and r.done)
    wanted = [float(sampled.columns[group]["answer"] % 2) for group in sampled.group]
    assert scored(records).rewards.tolist() == wanted
    (tmp_path / "own.py").write_text("def f(completions):\n    return [0.5] * len(completions)\n")
    assert asyncio.run(reward(completions=["a"])) == [0.5], "it may become an ordinary function"


def test_a_mistake_in_an_asynchronous_reward_names_its_line(start: Start, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ASYNC)
    with pytest.raises(Halt, match=r"'uneven' failed: .*own\.py:14: ZeroDivisionError: .*division by zero; fix it"):
        played(start, load_reward(f"{tmp_path / 'own.py'}:broken"))


def test_asynchronous_rewards_run_at_the_same_time(start: Start) -> None:
    driver, records = start(reward="uneven+seldom")
    both = asyncio.Barrier(2)

    async def meets(completions: list[Any]) -> list[float]:
        await both.wait()
        return [1.0] * len(completions)

    driver._state.task.rewards.update(uneven=meets, seldom=meets)
    driver.advance("update", 1, lambda: False)
    driver.close()
    assert scored(list(records)).rewards.tolist() == [2.0] * 12


def test_a_reward_of_a_module(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rlplay_test_rewards.py").write_text(
        "def f(completions):\n    return [2.0] * len(completions)\n\n"
        "def g(completions):\n    return completions[0] / 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert scored(played(start, load_reward("rlplay_test_rewards:f"))).rewards.tolist() == [2.0] * 12
    with pytest.raises(OwnError, match=r"^rlplay_test_rewards: no function 'h'; it has f, g$"):
        load_reward("rlplay_test_rewards:h")
    with pytest.raises(OwnError, match=r"rlplay_test_rewards: g: .*rlplay_test_rewards\.py:5: TypeError"):
        load_reward("rlplay_test_rewards:g")(completions=["a"])
    with pytest.raises(OwnError, match=r"^rlplay\.no_such_module: ModuleNotFoundError: .*; install the package"):
        load_reward("rlplay.no_such_module:h")


def test_a_reward_of_weight_0_is_tracked_and_never_trained_on(start: Start) -> None:
    alone = played(start, lambda completion_ids: [len(ids) % 3 for ids in completion_ids])
    driver, records = start(run="two.rlplay", reward="uneven+choosy", reward_weights={"uneven": 1, "choosy": 0})
    driver._state.task.rewards["uneven"] = lambda completion_ids: [len(ids) % 3 for ids in completion_ids]
    driver.advance("update", 1, lambda: False)
    driver.close()
    found, finished = scored(list(records)), records_of(Finished, list(records))[0]
    assert list(found.parts) == ["uneven"]
    assert set(found.gold) == {"choosy", "correct"}
    assert np.isnan(found.gold["choosy"]).any()
    assert finished.metrics["gold/choosy/mean"] == pytest.approx(np.nanmean(found.gold["choosy"]))
    assert (finished.logprobs == records_of(Finished, alone)[0].logprobs).all()


def test_a_reward_of_weight_0_labels_no_pairs(start: Start, opinionated: None) -> None:
    alone, both = (scored(labelled(start, reward)).roles for reward in ("uneven", "uneven+choosy"))
    assert alone == both


def labelled(start: Start, reward: str) -> list[AnyRecord]:
    weights = {"uneven": 1} | dict.fromkeys(reward.split("+")[1:], 0)
    driver, records = start(run=f"{reward}.rlplay", algorithm="dpo", reward=reward, reward_weights=weights)
    driver.advance("update", 1, lambda: False)
    driver.close()
    return list(records)


def test_rewards_that_all_have_weight_0_are_named(start: Start) -> None:
    driver, _ = start(reward_weights={"uneven": 0})
    with pytest.raises(Halt, match=r"no reward function answered for any completion .every weight is 0"):
        driver.advance("update", 1, lambda: False)
    driver.close()


def test_two_scores_of_one_name_are_refused(start: Start) -> None:
    driver, _ = start(reward_weights={"uneven": 1})
    driver._state.task.gold["uneven"] = lambda completions: [0.0] * len(completions)
    driver.set({"reward_weights": {"uneven": 0}})
    with pytest.raises(Halt, match="the task has another gold score 'uneven'; rename your reward function"):
        driver.advance("update", 1, lambda: False)
    driver.close()
