"""What another reward would have made of a token is what an update with that reward makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from rlplay.engine.driver import Driver
from rlplay.engine.snapshots import SnapshotStore
from rlplay.trace.questions import Reach, Reached
from rlplay.trace.records import AnyRecord, Finished, Sampled, Scored, Stepped

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
FAST = {"learning_rate": 1e-2}


def never() -> bool:
    return False


def go(start: Start, updates: int = 2, **given: Any) -> tuple[Driver, list[AnyRecord]]:
    driver, records = start(**FAST | given)
    driver.advance("update", updates, never)
    return driver, records


def last(records: list[AnyRecord], kind: type[Any]) -> Any:
    return next(each for each in reversed(records) if isinstance(each, kind))


def answers(driver: Driver, *question: Any) -> list[Reached]:
    return [each for each in driver.answers(Reach(*question), never) if isinstance(each, Reached)]


@pytest.mark.parametrize(
    "given",
    [
        {"algorithm": "grpo", "beta": 0.1, "num_iterations": 2, "num_minibatches": 2},
        {"algorithm": "ppo", "num_iterations": 2},
        {"algorithm": "reinforce", "learning_rate": 1e-2},
    ],
)
def test_the_reward_that_was_earned_gives_the_probability_that_was_recorded(
    start: Start, given: dict[str, Any]
) -> None:
    driver, records = go(start, **given)
    sampled, scored, finished = (last(records, kind) for kind in (Sampled, Scored, Finished))
    row, token = int(np.diff(sampled.offsets).argmax()), 1
    (found,) = answers(driver, row, token, [float(scored.rewards[row])])
    place = int(sampled.offsets[row]) + token
    assert list(finished.rows) == list(range(len(sampled.group)))
    assert found.probabilities[0] == pytest.approx(float(np.exp(finished.logprobs[place])), rel=1e-4)
    assert found.old == pytest.approx(float(np.exp(sampled.old_logprobs[place])), rel=1e-5)
    assert found.reward == float(scored.rewards[row])


def test_a_larger_reward_makes_the_token_likelier(start: Start) -> None:
    driver, records = go(start, algorithm="reinforce-baseline")
    answer = answers(driver, 0, 1, [-4.0, 0.0, 4.0])[-1]
    assert answer.probabilities[0] < answer.old < answer.probabilities[2]
    assert answer.probabilities == sorted(answer.probabilities)
    assert [len(each.probabilities) for each in answers(driver, 0, 1, [-1.0, 1.0])] == [1, 2], "one after another"
    assert isinstance(records[-1], Finished), "nothing of it is recorded"


def test_the_run_goes_on_as_if_nobody_had_asked(start: Start) -> None:
    asked, told = go(start, run="asked.rlplay", num_iterations=2)
    other, untold = go(start, run="other.rlplay", num_iterations=2)
    answers(asked, 0, 0, [5.0, -5.0])
    assert asked.what_if({"epsilon": 0.1}).update == 2, "the answers are still there for other questions"
    for driver in (asked, other):
        driver.advance("update", 1, never)
    ours, theirs = (last(records, Stepped) for records in (told, untold))
    assert np.array_equal(ours.logprobs, theirs.logprobs)
    weights = (driver._state.parameters.values() for driver in (asked, other))
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_each_phase_has_the_settings_that_it_had(start: Start) -> None:
    driver, records = start(**FAST, beta=0.1)
    driver.advance("phase", 2, never)
    driver.set({"learning_rate": 0.05, "scale_rewards": "none"})
    driver.advance("update", 1, never)
    scored, finished = last(records, Scored), last(records, Finished)
    (found,) = answers(driver, 0, 1, [float(scored.rewards[0])])
    assert found.probabilities[0] == pytest.approx(float(np.exp(finished.logprobs[1])), rel=1e-4)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"algorithm": "dpo"}, "loss_type=policy_gradient"),
        ({"algorithm": "sft"}, "loss_type=policy_gradient"),
        ({"multi_objective_aggregation": "normalize_then_sum"}, "no single reward"),
        ({"reward": "halves", "reward_stream": "process"}, "the steps of this answer"),
    ],
)
def test_where_a_reward_would_change_nothing_it_is_refused(start: Start, given: dict[str, Any], why: str) -> None:
    driver, _ = go(start, 1, **given)
    with pytest.raises(ValueError, match=why):
        answers(driver, 0, 1, [1.0, 2.0])


def test_the_run_is_where_it_was_also_without_a_snapshot(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotStore, "_is_due", lambda *_: False)
    driver, _ = go(start)
    before = {name: weight.detach().clone() for name, weight in driver._state.parameters.items()}
    monkeypatch.setattr("rlplay.engine.reach.learned_again", fail)
    with pytest.raises(OSError, match="away"):
        answers(driver, 0, 1, [1.0])
    assert driver.status().update == 2
    assert all(torch.equal(before[name], weight) for name, weight in driver._state.parameters.items())
    assert driver._store.kept() == []
    driver.advance("update", 1, never)
    assert driver.status().update == 3


def fail(*_: Any) -> None:
    raise OSError("the judge is away")


@pytest.mark.parametrize(
    ("until", "count", "question", "why"),
    [
        ("phase", 2, (0, 0, [1.0]), "no answers|under way"),
        ("update", 1, (99, 0, [1.0]), "no such token"),
        ("update", 1, (0, 99, [1.0]), "no such token"),
    ],
)
def test_what_cannot_be_asked_says_why(start: Start, until: Any, count: int, question: Any, why: str) -> None:
    driver, _ = start(**FAST)
    driver.advance(until, count, never)
    with pytest.raises(ValueError, match=why):
        answers(driver, *question)


def test_a_new_question_ends_the_old_one(start: Start) -> None:
    driver, _ = go(start)
    found = list(driver.answers(Reach(0, 0, [1.0, 2.0, 3.0]), lambda: True))
    assert [each.done for each in found] == [True]
