"""A person's walk follows the engine's transitions, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.tasks.task import Steps
from rlplay.worlds.walking import Walk
from rlplay.worlds.world import DIRECTIONS, World, discounted, read_world
from rlplay.worlds.world_task import REWARD, walk, world_task

signs = st.sampled_from("...OG#I123")
worlds = st.builds(
    lambda rows, slip, ice, steps: read_world(
        {"map": ["S" + rows[0][1:], *rows[1:]], "slip": slip, "ice": ice, "steps": steps}
    ),
    st.lists(st.text(signs, min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.3]), st.sampled_from([0.0, 0.6]), st.integers(1, 12),
)  # fmt: skip
moves = st.lists(st.sampled_from(tuple(DIRECTIONS)), max_size=15)


def made(world: World, wanted: list[str], seed: int) -> Walk:
    found = Walk(world, "a1", seed)
    for move in wanted:
        if found.over:
            break
        found = found.on(move)
    return found


@given(worlds, moves, st.integers(0, 99))
def test_every_step_is_the_engines(world: World, wanted: list[str], seed: int) -> None:
    found = made(world, wanted, seed)
    chances = np.random.default_rng(seed).random(world.steps).tolist()
    for count in range(1, len(found.moves) + 1):
        reply = walk(world, "a1", found.moves[:count], chances)
        assert reply.state == found.path[count]
        assert reply.over == (count == len(found.moves) and found.over)
        outcomes = {o.state: o.reward for o in world.outcomes(found.path[count - 1], found.moves[count - 1])}
        assert found.rewards[count - 1] == outcomes[found.path[count]]
    assert found.over == (len(found.moves) == world.steps or world.ends(found.square))


@given(worlds, moves, st.integers(0, 99))
def test_a_walk_earns_what_the_worlds_reward_gives(world: World, wanted: list[str], seed: int) -> None:
    found = made(world, wanted, seed)
    given_by: Any = world_task(world).rewards[REWARD]
    (steps,) = given_by([""], states=[list(found.path[1:])])
    expected: Steps = [(place, reward) for place, reward in enumerate(found.rewards, start=1)]
    assert steps == expected


def test_slips_have_the_worlds_chance() -> None:
    world = read_world({"map": [".....", "..I..", ".....", "S...."], "ice": 0.3})
    slipped = [Walk(world, "c2", seed).on("→").slipped[0] for seed in range(2000)]
    assert np.mean(slipped) == pytest.approx(0.3, abs=0.03)
    assert Walk(world, "c2", 7).on("→") == Walk(world, "c2", 7).on("→"), "the same seed, the same walk"
    assert Walk(world, "c2", 7).on("→").path == Walk(world, "c2", 7).on("→").path


def test_a_walk_that_is_over_goes_nowhere() -> None:
    world = read_world({"map": ["SG"], "moves": ["→"]})
    ended = Walk(world, "a1").on("→")
    assert ended.over
    assert ended.square == "b1"
    for walked, move in ((ended, "→"), (Walk(world, "a1"), "↑")):
        with pytest.raises(ValueError, match="no move"):
            walked.on(move)


def test_a_return_is_discounted() -> None:
    assert discounted([1, 2, 3], 0.5) == pytest.approx(2.75)
    assert discounted([], 0.5) == 0
