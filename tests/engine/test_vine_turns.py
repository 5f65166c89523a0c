"""Sampled values of turns: episodes that go on from the middle, with their environment as it was there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from rlplay.algorithms.apply import resolve
from rlplay.engine.batch import Batch, Prompts
from rlplay.engine.driver import Driver
from rlplay.engine.episodes import turns
from rlplay.engine.model import load_model, wrap
from rlplay.engine.sample import sample
from rlplay.engine.state import Halt
from rlplay.engine.vine import vine
from rlplay.engine.world_policy import world_policy
from rlplay.scenario.schema import Job, Scenario
from rlplay.tasks import load_task
from rlplay.tasks.guess import answer
from rlplay.tasks.task import Reply
from rlplay.trace.records import AnyRecord, Credited, Sampled, Scored
from rlplay.worlds.world import World, read_world
from rlplay.worlds.world_task import world_task

SLIPPERY: dict[str, Any] = {"map": ["S..", ".O.", "..G"], "step": -0.1, "slip": 0.3, "steps": 4}
TURNS = {"algorithm": "grpo", "returns": "vine", "baseline": "none", "scale_rewards": "none"}


def never() -> bool:
    return False


def drained(moments: Any) -> Any:
    while True:
        try:
            next(moments)
        except StopIteration as done:
            return done.value


def a_state(lm: Any, task: Any, **settings: Any) -> Any:
    return SimpleNamespace(
        lm=lm,
        sampling_lm=lm,
        settings=resolve({**TURNS, **settings}),
        task=task,
        environment=task.environment,
        reward_model=None,
        update=1,
        max_updates=2,
    )


def episodes(state: Any, generations: int = 4, prompts: int = 4) -> Batch:
    examples = state.task.train[:prompts]
    length = state.settings.max_completion_length
    return drained(
        sample(
            state.lm, Prompts.of(state.lm, examples), generations=generations, length=length, temperature=1.0, keep=1,
            seed=1, update=1, environment=state.task.environment,
        )
    )  # fmt: skip


def exact(world: World, policy: dict[str, dict[str, float]], square: str, left: int) -> tuple[float, float]:
    """Mean and mean square of the reward from a square with so many moves left: every move and slip that may come."""
    mean, mean_square = 0.0, 0.0
    for move, share in policy[square].items() if left else ():
        for each in world.outcomes(square, move):
            later, later_square = (0.0, 0.0) if each.over else exact(world, policy, each.state, left - 1)
            mean += share * each.probability * (each.reward + later)
            mean_square += share * each.probability * (each.reward**2 + 2 * each.reward * later + later_square)
    return mean, mean_square


def test_the_values_of_a_slippery_worlds_turns_are_those_of_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    world = read_world(SLIPPERY)
    table, tokenizer = world_policy(world, "table", 0)
    torch.manual_seed(3)
    with torch.no_grad():
        table.head.weight.normal_(std=0.7)
    state = a_state(
        wrap(table, tokenizer, torch.device("cpu")), world_task(world),
        vine_samples=256, max_completion_length=world.tokens,
    )  # fmt: skip
    state.settings = msgspec.structs.replace(state.settings, vine_samples=1000)
    weights = table.head.weight[:, : len(world.actions) + len(world.states)]
    policy = {
        name: dict(zip(world.actions, weights[:, len(world.actions) + i].softmax(0).tolist(), strict=True))
        for i, name in enumerate(world.states)
    }
    batch = episodes(state, generations=12, prompts=1)
    drained(vine(batch, state, seed=2))
    assert batch.vine_values is not None
    compared = 0
    for row, path in batch.states.items():
        squares, earned = ["a1", *path], 0.0
        own_tokens = turns(batch.mask[row].tolist())
        for k, ((begin, end), square) in enumerate(zip(own_tokens, squares, strict=False)):
            earned += world.reward(square) if k else 0.0
            mean, mean_square = exact(world, policy, square, SLIPPERY["steps"] - k)
            errors = 4 * ((mean_square - mean**2) / 1000) ** 0.5  # standard errors of a mean of 1000 rewards
            np.testing.assert_allclose(batch.vine_values[row, begin:end], earned + mean, atol=errors)
            compared += k > 0
    assert compared > 12


@pytest.fixture(scope="module")
def guessing() -> tuple[Any, Any]:
    return load_model("pocket", torch.device("cpu")), load_task("guess")


def test_every_sampled_game_begins_with_the_turns_and_replies_of_its_state(guessing: tuple[Any, Any]) -> None:
    lm, task = guessing
    games: list[tuple[int, list[str], list[str]]] = []

    def watched(completions: Sequence[list[dict[str, str]]], secret: list[int], **_columns: Any) -> list[float]:
        for each, right in zip(completions, secret, strict=True):
            own, others = ([m["content"] for m in each if m["role"] == role] for role in ("assistant", "user"))
            games.append((right, own, others))
        return [float(len(own)) for _, own, _ in games[-len(completions) :]]

    state = a_state(
        lm, msgspec.structs.replace(task, rewards={"watched": watched}, gold={}), vine_samples=3,
        max_completion_length=40,
    )  # fmt: skip
    batch = episodes(state)
    drained(vine(batch, state, seed=7))
    found, lengths = Counter[tuple[int, tuple[str, ...]]](), Counter[int]()
    for secret, own, others in games:
        example = next(each for each in task.train if each.columns["secret"] == secret)
        assert others == [answer(example, own[: k + 1]) for k in range(len(others))]
        assert len(own) - len(others) in (0, 1)
        for k in range(len(own)):
            found[secret, tuple(own[:k])] += 1
    assert batch.vine_values is not None
    assert batch.vine_ends is not None
    states = set()
    for row in range(len(batch.group)):
        secret = batch.prompts.examples[int(batch.group[row])].columns["secret"]
        spans = list(turns(batch.mask[row].tolist()))
        said = [lm.decode(batch.ids[row, begin:end].tolist()) for begin, end in spans]
        assert np.flatnonzero(batch.vine_ends[row]).tolist() == [end - 1 for _, end in spans]
        assert not batch.vine_values[row][~batch.mask[row]].any()
        for k, (begin, end) in enumerate(spans):
            states.add((secret, tuple(batch.ids[row, :begin].tolist())))
            assert found[secret, tuple(said[:k])] >= 3
            assert len(set(batch.vine_values[row, begin:end].tolist())) == 1
            lengths[k] += 1
    assert len(games) == 3 * len(states), "equal states are sampled once"
    assert lengths[2] > 3


def test_a_turn_earns_what_the_value_rises_by(tmp_path: Path) -> None:
    records = guessed(tmp_path)
    sampled, credited, scored = (
        next(r for r in records if isinstance(r, kind) and getattr(r, "done", True))
        for kind in (Sampled, Credited, Scored)
    )
    several = 0
    for row, (a, b) in enumerate(pairwise(sampled.offsets.tolist())):
        values, advantages = credited.values[a:b], credited.advantages[a:b]
        spans = list(turns(sampled.mask[a:b].astype(bool).tolist()))
        worth = [float(values[begin]) for begin, _ in spans] + [float(scored.rewards[row])]
        for (begin, end), (before, after) in zip(spans, pairwise(worth), strict=True):
            np.testing.assert_allclose(advantages[begin:end], after - before, atol=1e-6)
        assert not advantages[sampled.mask[a:b] == 0].any()
        several += len(spans) > 2
    assert several > 2


def play_guess(folder: Path, **settings: Any) -> tuple[Driver, list[AnyRecord]]:
    given = {"num_prompts": 3, "num_generations": 4, "max_completion_length": 50, "vine_samples": 2}
    given |= {**TURNS, "learning_rate": 1e-3, "reward_weights": {"guessed": 1}, **settings}
    scenario = Scenario(
        name="guess", title="", question="", task="guess", eval_every=0, max_updates=2, settings=given
    )  # fmt: skip
    records: list[AnyRecord] = []
    driver = Driver(Job(scenario, str(folder / "run.rlplay"), device="cpu", threads=1), records.append)
    driver.load(lambda what, fraction: None)
    return driver, records


def guessed(folder: Path, **settings: Any) -> list[AnyRecord]:
    driver, records = play_guess(folder, **settings)
    driver.advance("update", 1, never)
    driver.close()
    return records


def test_going_back_repeats_the_values_bit_for_bit(tmp_path: Path) -> None:
    driver, records = play_guess(tmp_path, num_prompts=2, num_generations=2)
    driver.advance("update", 2, never)
    first = [record for record in records if isinstance(record, Credited)]
    driver.rewind(1)
    driver.advance("update", 1, never)
    again = [record for record in records if isinstance(record, Credited)][-1]
    np.testing.assert_array_equal(again.values, first[1].values)
    np.testing.assert_array_equal(again.advantages, first[1].advantages)
    driver.close()


def test_groups_that_were_put_together_can_be_continued(tmp_path: Path) -> None:
    records = guessed(tmp_path, dynamic_sampling=True, num_generations=3)
    credited = next(record for record in records if isinstance(record, Credited))
    assert np.isfinite(credited.values).all()
    assert len(np.unique(credited.values)) > 2


def test_a_reply_that_changes_stops_the_run_in_one_line(guessing: tuple[Any, Any]) -> None:
    lm, task = guessing
    asked = Counter[str]()

    def moody(example: Any, turns: list[str]) -> str | None:
        asked[json.dumps([example.columns, turns])] += 1
        return None if len(turns) > 2 else f"Guess {sum(asked.values())}."

    state = a_state(lm, msgspec.structs.replace(task, environment=moody), max_completion_length=60, vine_samples=2)
    with pytest.raises(Halt, match="answered the same turns in another way when an episode was continued") as raised:
        drained(vine(episodes(state), state, seed=1))
    assert "\n" not in str(raised.value)


def test_random_numbers_of_the_turns_before_are_kept_and_those_behind_are_new(guessing: tuple[Any, Any]) -> None:
    lm, task = guessing
    seen: dict[int, set[tuple[float, ...]]] = {}

    def drawing(turns: list[str], chances: Sequence[float]) -> Reply:
        seen.setdefault(len(turns), set()).add(tuple(float(x) for x in chances[: len(turns)]))
        return Reply(f"{chances[len(turns) - 1]:.3f}", over=len(turns) > 2)

    state = a_state(lm, msgspec.structs.replace(task, environment=drawing), max_completion_length=80, vine_samples=4)
    batch = episodes(state, generations=2, prompts=2)
    first = {turns: set(numbers) for turns, numbers in seen.items()}
    seen.clear()
    drained(vine(batch, state, seed=1))
    assert first[1] <= seen[1]
    assert {numbers[:1] for numbers in seen[2]} >= first[1]
    assert len(seen[2]) > len(first[2])
    assert len({numbers[-1] for numbers in seen[2]}) == len(seen[2])
