"""Without the credit of some tokens a target is where an update that never had that credit puts it, bit for bit."""

from __future__ import annotations

import queue
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlplay.engine import learn_from_answers, policy_gradient
from rlplay.engine.driver import Driver
from rlplay.engine.engine_process import CommandLoop
from rlplay.engine.snapshots import SnapshotStore
from rlplay.engine.take_away import TakingAway
from rlplay.engine.target_value import target_value
from rlplay.link.messages import Advance, EndProbe, Status, Stop
from rlplay.trace.records import AnyRecord, Finished, Sampled
from rlplay.trace.teachers import TakeAway, TakenAway, Target
from tests.engine.test_target_value import target_of
from tests.worlds.value_run import SMALL, Run

Start = Callable[..., tuple[Driver, list[AnyRecord]]]
Weights = dict[str, Tensor]
FAST = {"learning_rate": 1e-2}


def never() -> bool:
    return False


def last_sampled(records: list[AnyRecord], update: int) -> Sampled:
    return [each for each in records if isinstance(each, Sampled) and each.done and each.update == update][-1]


def rows_and_columns(sampled: Sampled, tokens: list[int]) -> tuple[list[int], list[int]]:
    """Where flat tokens are in a padded batch, counted here and not by the engine."""
    places = [(row, at) for row, (low, high) in enumerate(pairwise(sampled.offsets)) for at in range(high - low)]
    return [places[token][0] for token in tokens], [places[token][1] for token in tokens]


def taken(sampled: Sampled) -> list[int]:
    """Some tokens of the policy: all of the second answer, and one of every third token of the others."""
    own, inside = np.flatnonzero(sampled.mask).tolist(), range(*sampled.offsets[1:3])
    return [token for token in own if token in inside or not token % 3]


def weights_of(driver: Driver) -> Weights:
    return {name: weight.detach().clone() for name, weight in driver._state.parameters.items()}


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Weights]:
    """The weights by which each value of a target is computed: after, before, without."""
    found, value = list[Weights](), TakingAway._value

    def watched(self: Driver, target: Target, update: int) -> float:
        found.append(weights_of(self))
        return value(self, target, update)

    monkeypatch.setattr(TakingAway, "_value", watched)
    return found


def ask(driver: Driver, sampled: Sampled, tokens: list[int]) -> tuple[Target, TakenAway]:
    target = target_of(sampled, 1, np.flatnonzero(sampled.mask[slice(*sampled.offsets[1:3])]).tolist())
    (answer,) = driver.answers(TakeAway(target, sampled.update, tokens), never)
    assert isinstance(answer, TakenAway)
    return target, answer


def q(driver: Driver, target: Target, temperature: float) -> float:
    return float(target_value(target, driver._state.lm, temperature).detach())


REWARDED: dict[str, dict[str, Any]] = {
    "grpo": {"algorithm": "grpo", "num_iterations": 2, "num_minibatches": 2, "temperature": 0.8},
    "grpo with a KL": {"algorithm": "grpo", "beta": 0.2, "num_iterations": 2},
    "ppo with a value head": {"algorithm": "ppo", "num_iterations": 2, "entropy_coef": 0.01},
    "trpo": {"algorithm": "trpo"},
    "vine": {"algorithm": "vineppo", "vine_samples": 2},
}


@pytest.mark.parametrize("given", REWARDED.values(), ids=REWARDED)
@pytest.mark.parametrize("older", [False, True])
def test_it_is_the_update_without_those_advantages(
    start: Start, seen: list[Weights], given: dict[str, Any], older: bool
) -> None:
    driver, records = start(**FAST | given)
    driver.advance("update", 2 + older, never)
    sampled = last_sampled(records, 2)
    tokens, before = taken(sampled), weights_of(driver)
    target, answer = ask(driver, sampled, tokens)
    other, _ = start(run="other.rlplay", **FAST | given)
    other.advance("update", 1, never)
    assert answer.before == q(other, target, sampled.temperature)
    other.advance("phase", 3, never)
    batch = other._state.batch
    assert batch is not None
    assert batch.advantages is not None
    tampered = batch.advantages.clone()
    tampered[rows_and_columns(sampled, tokens)] = 0.0
    assert not torch.equal(tampered, batch.advantages)
    batch.put(advantages=tampered)
    other.advance("update", 1, never)
    assert answer.without == q(other, target, sampled.temperature)
    assert same(seen[2], weights_of(other))
    assert answer.without != answer.after
    assert same(before, weights_of(driver))
    if not older:
        assert answer.after == q(driver, target, sampled.temperature)


def test_answers_without_any_credit_get_no_backward_pass(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, records = start(**FAST)
    driver.advance("update", 1, never)
    sampled, silent = last_sampled(records, 1), list[int]()
    tokens = np.flatnonzero(sampled.mask[: sampled.offsets[5]]).tolist()
    quiet = policy_gradient._silent

    def counted(batch: Any, rows: Tensor, *others: Any) -> Any:
        silent.extend(rows.tolist())
        return quiet(batch, rows, *others)

    monkeypatch.setattr(policy_gradient, "_silent", counted)
    _, answer = ask(driver, sampled, tokens)
    assert set(silent) >= {0, 1, 2, 3, 4}
    monkeypatch.setattr(policy_gradient, "without_gradient", lambda _batch, rows, *_: torch.zeros_like(rows).bool())
    _, loud = ask(driver, sampled, tokens)
    assert answer.without == pytest.approx(loud.without, rel=1e-5) != answer.after


GIVEN: list[dict[str, Any]] = [{"algorithm": "sft"}, {"algorithm": "dpo", "num_minibatches": 2}, {"algorithm": "kto"}]


@pytest.mark.usefixtures("opinionated")
@pytest.mark.parametrize("given", GIVEN, ids=lambda each: each["algorithm"])
def test_it_is_the_update_without_those_derivatives(
    start: Start, seen: list[Weights], given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, records = start(num_prompts=4, **FAST | given)
    driver.advance("update", 2, never)
    sampled = last_sampled(records, 2)
    tokens = taken(sampled)
    target, answer = ask(driver, sampled, tokens)
    derivative, padded = learn_from_answers._derivative, torch.zeros(len(sampled.group), 64, dtype=torch.bool)
    padded[rows_and_columns(sampled, tokens)] = True

    def tampered(batch: Any, part: Any, *others: Any) -> Any:
        gradient, compared = derivative(batch, part, *others)
        if batch.update == 2:
            gradient = torch.where(padded[part.rows, : gradient.shape[1]], 0.0, gradient)
        return gradient, compared

    monkeypatch.setattr(learn_from_answers, "_derivative", tampered)
    other, _ = start(run="other.rlplay", num_prompts=4, **FAST | given)
    other.advance("update", 2, never)
    assert answer.without == q(other, target, 1.0)
    assert same(seen[2], weights_of(other))
    assert answer.without != answer.after == q(driver, target, 1.0)


def test_a_world_has_its_moves_taken_away(tmp_path: Path, seen: list[Weights]) -> None:
    given: dict[str, Any] = {"settings": {"algorithm": "reinforce", "temperature": 0.9}}
    run, other = (Run(tmp_path, SMALL, name, **given) for name in ("one", "other"))
    run.go(2)
    sampled = last_sampled(run.records, 2)
    tokens = taken(sampled)
    target, answer = ask(run.driver, sampled, tokens)
    other.go(1).driver.advance("phase", 3, never)
    batch = other.driver._state.batch
    assert batch is not None
    assert batch.advantages is not None
    tampered = batch.advantages.clone()
    tampered[rows_and_columns(sampled, tokens)] = 0.0
    batch.put(advantages=tampered)
    other.driver.advance("update", 1, never)
    assert answer.without == q(other.driver, target, 0.9) != answer.after
    assert same(seen[2], weights_of(other.driver))


def test_q_learning_takes_no_step_for_those_moves(tmp_path: Path, seen: list[Weights]) -> None:
    run = Run(tmp_path, SMALL).go(3)
    sampled, credited = last_sampled(run.records, 3), run.updates[3].credited
    assert credited is not None
    assert credited.token_rewards is not None
    tokens = [each for each in taken(sampled) if each % 4]
    ask(run.driver, sampled, tokens)
    after, before, without = (weights["policy.head.weight"].numpy().copy() for weights in seen)
    squares = np.concatenate([[0], sampled.token_ids[:-1]])
    squares[sampled.offsets[:-1]] = sampled.prompt_ids[sampled.prompt_offsets[sampled.group]]
    for first, end in pairwise(sampled.offsets):
        moves = [at for at in range(first, end) if sampled.mask[at]]
        for at, then in zip(moves, [*moves[1:], None], strict=True):
            if at not in tokens:
                follows = np.float32(0) if then is None else before[:, squares[then]].max()
                here = (sampled.token_ids[at], squares[at])
                aims = credited.token_rewards[at] + 0.9 * follows
                before[here] += 0.25 * (aims - before[here])
    assert np.array_equal(without, before)
    assert not np.array_equal(without, after)


def test_nothing_of_the_run_changes(start: Start) -> None:
    asked, told = start(run="asked.rlplay", **FAST, eval_every=1)
    other, untold = start(run="other.rlplay", **FAST, eval_every=1)
    for driver in (asked, other):
        driver.advance("update", 2, never)
    sampled, count = last_sampled(told, 2), len(told)
    ask(asked, sampled, taken(sampled))
    ask(asked, last_sampled(told, 1), [0])
    assert len(told) == count
    assert asked.what_if({"epsilon": 0.1}).update == 2
    assert asked._state.withheld == {}
    for driver in (asked, other):
        driver.advance("update", 1, never)
    assert same(weights_of(asked), weights_of(other))
    ends = ([each.metrics for each in records if isinstance(each, Finished)] for records in (told, untold))
    assert next(ends) == next(ends)


@pytest.mark.parametrize("given", [{"num_iterations": 3}, {"algorithm": "dpo"}])
@pytest.mark.parametrize("kept", [True, False])
def test_another_command_ends_it_and_nothing_changes(
    start: Start, given: dict[str, Any], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kept:
        monkeypatch.setattr(SnapshotStore, "_is_due", lambda *_: False)
    driver, records = start(**FAST | given)
    driver.advance("update", 2, never)
    before, sampled, asks = weights_of(driver), last_sampled(records, 2), iter([False] * 2 + [True] * 99)
    with pytest.raises(ValueError, match="another command"):
        list(driver.answers(TakeAway(target_of(sampled, 0, [0]), 2, [0]), lambda: next(asks)))
    assert same(before, weights_of(driver))
    assert driver._state.withheld == {}
    driver.advance("update", 1, never)
    assert driver.status().update == 3


def test_what_cannot_be_taken_away_is_refused(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    sampled = last_sampled(records, 1)
    target, count = target_of(sampled, 0, [0]), len(sampled.token_ids)
    for update, tokens, why in (
        (1, [], "at least one"),
        (1, [3, 2], "ascending"),
        (1, [-1], "from 0"),
        (1, [count], f"has {count} tokens"),
        (2, [0], "not finished"),
        (0, [0], "not finished"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=why):
            list(driver.answers(TakeAway(target, update, tokens), never))
    driver.advance("phase", 1, never)
    with pytest.raises(ValueError, match="under way"):
        list(driver.answers(TakeAway(target, 1, [0]), never))


def test_the_words_of_an_environment_have_no_credit(tmp_path: Path) -> None:
    run = Run(tmp_path, SMALL, settings={"algorithm": "grpo"}).go(1)
    sampled = last_sampled(run.records, 1)
    with pytest.raises(RuntimeError, match="not the policy's"):
        ask(run.driver, sampled, [int(np.flatnonzero(sampled.mask == 0)[0])])


def test_a_reward_model_is_no_policy(start: Start) -> None:
    driver, records = start(algorithm="reward-model")
    driver.advance("update", 1, never)
    with pytest.raises(ValueError, match="reward model"):
        ask(driver, last_sampled(records, 1), [0])


class Screen:
    """Asks `question` as soon as the run goes on, and stops after the answer."""

    def __init__(self, first: Any, question: TakeAway) -> None:
        self.commands: queue.Queue[Any] = queue.Queue()
        self.commands.put(first)
        self.question, self.events = question, list[Any]()

    def send(self, event: Any) -> None:
        if (
            isinstance(event, Status)
            and event.running
            and not any(isinstance(each, Status) for each in self.events[1:])
        ):
            self.commands.put(self.question)
        if isinstance(event, TakenAway):
            self.commands.put(Stop())
        self.events.append(event)


@pytest.mark.parametrize(("first", "refused"), [(Advance("forever"), ""), (Advance("phase"), "under way")])
def test_asked_while_the_run_goes_on_it_waits_for_the_end_of_the_update(start: Start, first: Any, refused: str) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    wire = Screen(first, TakeAway(target_of(last_sampled(records, 1), 0, [0]), 1, [0]))
    assert CommandLoop(wire, driver).serve() == 0  # type: ignore[arg-type]
    (answer,) = [event for event in wire.events if isinstance(event, TakenAway)]
    assert bool(answer.refused) == bool(refused)
    assert refused in answer.refused
    assert refused or answer.without


class Leaving(Screen):
    """Asks, and wants no answer any more before the update has ended; stops once it has."""

    def send(self, event: Any) -> None:
        asked = self.commands.qsize()
        super().send(event)
        if self.commands.qsize() > asked:
            self.commands.put(EndProbe())
        if isinstance(event, Status) and not event.running and len(self.events) > 2:
            self.commands.put(Stop())


def test_what_waits_for_the_end_of_the_update_can_be_called_off(start: Start) -> None:
    driver, records = start()
    driver.advance("update", 1, never)
    wire = Leaving(Advance("update"), TakeAway(target_of(last_sampled(records, 1), 0, [0]), 1, [0]))
    assert CommandLoop(wire, driver).serve() == 0  # type: ignore[arg-type]
    assert driver.status().update == 2
    assert not [event for event in wire.events if isinstance(event, TakenAway)]
