"""What exploring costs while an agent learns, on several seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlplay.worlds.chart import chart
from rlplay.worlds.world import read_world
from tests.worlds.test_value_learning import CLIFF, after
from tests.worlds.value_run import MAZE, Run


def late(run: Run, name: str) -> float:
    return float(np.mean(run.metric(name)[-20:]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("algorithm", "least"), [("q-learning", 0.5), ("sarsa", 0.15)])
def test_exploring_costs_on_thin_ice(tmp_path: Path, algorithm: str, least: float, seed: int) -> None:
    run = after(tmp_path, MAZE, algorithm, seed, 0.99, 80)
    assert late(run, "greedy_reward") - late(run, "behaviour_reward") >= least


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_sarsa_keeps_away_from_the_cliff_and_q_learning_walks_along_it(tmp_path: Path, seed: int) -> None:
    """Sutton and Barto 2018, example 6.6, with episodes that end in the cliff."""
    world = read_world(CLIFF)
    near, earned = {}, {}
    for algorithm in ("q-learning", "sarsa"):
        run = after(tmp_path, CLIFF, algorithm, seed, 1.0, 120)
        squares, here = chart(world, run.updates[120]).squares, "a4"
        near[algorithm] = -1  # the start is beside the cliff whatever the policy
        while not world.ends(here):
            near[algorithm] += any(world.kind(world.moved(here, move)) == "O" for move in world.moves)
            greedy = squares[here].greedy
            assert greedy is not None
            here = world.moved(here, next(iter(greedy)))
        earned[algorithm] = late(run, "behaviour_reward")
    assert near["sarsa"] == 0
    assert near["q-learning"] >= 4
    assert earned["sarsa"] > earned["q-learning"] + 0.3
