"""The exact figures of a policy in a world, held against what can be seen on the map."""

from __future__ import annotations

import numpy as np
import pytest

from rlplay.trace.records import Survey
from rlplay.worlds.figures import figures
from rlplay.worlds.world import World, read_world

GRID = read_world({"map": ["S...", "....", "....", "...G"]})


def surveyed(world: World, logits: np.ndarray) -> Survey:
    """The policy with these logits [S, A] in every situation that does not end an episode."""
    states = [state for state in world.states if not world.ends(state)]
    logprobs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    return Survey(states=states, actions=list(world.actions), logprobs=logprobs.astype(np.float32), values=None)


def test_the_greedy_rate_counts_the_squares_whose_likeliest_move_comes_nearer_to_the_goal() -> None:
    logits = np.random.default_rng(3).normal(size=(15, 4))
    survey = surveyed(GRID, logits)
    nearer = 0
    for row, square in enumerate(survey.states):
        column, line = "abcd".index(square[0]), int(square[1])
        move = survey.actions[int(logits[row].argmax())]
        nearer += (move == "→" and column < 3) or (move == "↓" and line < 4)
    assert 0 < nearer < 15
    assert figures(GRID, survey, "policy_gradient", 0.99)["greedy_rate"] == pytest.approx(nearer / 15, abs=1e-12)


def test_equally_likely_moves_share() -> None:
    found = figures(GRID, surveyed(GRID, np.zeros((15, 4))), "policy_gradient", 0.99)
    # Along the right and the lower edge, three squares each, one move of four comes nearer; elsewhere two.
    assert found == {"greedy_rate": pytest.approx((6 * 0.25 + 9 * 0.5) / 15, abs=1e-12)}


def test_the_greedy_pick_can_be_right_while_it_is_hardly_likelier() -> None:
    bandit = read_world({"arms": {"0": -0.1, "1": 0, "2": 1}, "contexts": 4})
    logits = np.zeros((4, 3))
    logits[:3, 2] = 0.01
    logits[3, 1] = 5
    assert figures(bandit, surveyed(bandit, logits), "policy_gradient", 1.0)["greedy_rate"] == 0.75


def test_no_move_is_the_best_where_a_reward_can_be_earned_for_ever() -> None:
    endless = read_world({"map": ["S1."]})
    survey = surveyed(endless, np.zeros((3, 4)))
    assert figures(endless, survey, "policy_gradient", 1.0) == {}
    assert figures(endless, survey, "policy_gradient", 0.9)["greedy_rate"] > 0
