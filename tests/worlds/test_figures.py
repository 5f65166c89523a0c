"""The exact figures of a policy in a world, held against what can be seen on the map."""

from __future__ import annotations

import msgspec
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


ICE = read_world({"map": ["S.O", "2SG"], "slip": 0.3, "steps": 4, "step": -0.1})


def earned(policy: dict[str, dict[str, float]], state: str, left: int) -> float:
    """The expected sum of the rewards of `left` moves from a square of `ICE`, along every way there is."""
    return sum(
        share * o.probability * (o.reward + (earned(policy, o.state, left - 1) if left > 1 and not o.over else 0.0))
        for move, share in policy[state].items()
        for o in ICE.outcomes(state, move)
    )


def worth(survey: Survey, values: dict[str, float]) -> list[dict[str, float]]:
    """What each move is worth in each square of `ICE` if what follows is worth `values`, discounted by 0.8."""
    return [
        {
            move: sum(o.probability * (o.reward + (0 if o.over else 0.8 * values[o.state]))
                      for o in ICE.outcomes(state, move))
            for move in survey.actions
        }
        for state in survey.states
    ]  # fmt: skip


@pytest.mark.parametrize("loss_type", ["q_learning", "sarsa"])
def test_figures_of_action_values_are_those_of_every_way_through_the_world(loss_type: str) -> None:
    dice = np.random.default_rng(1)
    survey = surveyed(ICE, dice.normal(size=(4, 4)))
    q = dice.normal(size=(4, 4)).astype(np.float32)
    found = figures(ICE, msgspec.structs.replace(survey, action_values=q), loss_type, 0.8)
    shares, best = np.exp(survey.logprobs.astype(np.float64)), q.argmax(1)
    expected = q.max(1) if loss_type == "q_learning" else (shares * q).sum(1)
    values = dict(zip(survey.states, expected.tolist(), strict=True))
    gaps = []
    for row, moves, value in zip(shares, worth(survey, values), expected, strict=True):
        backed = max(moves.values()) if loss_type == "q_learning" else np.dot(row, list(moves.values()))
        gaps.append(abs(value - backed))
    assert found["bellman_residual"] == pytest.approx(np.mean(gaps), abs=1e-7)
    behaviour = {
        state: dict(zip(survey.actions, row.tolist(), strict=True))
        for state, row in zip(survey.states, shares, strict=True)
    }
    greedy = {state: {survey.actions[move]: 1.0} for state, move in zip(survey.states, best, strict=True)}
    for name, policy in (("behaviour_reward", behaviour), ("greedy_reward", greedy)):
        assert found[name] == pytest.approx(np.mean([earned(policy, start, 4) for start in ("a1", "b2")]), abs=1e-9)


def test_a_critics_residual_is_on_average_over_the_moves_of_the_policy() -> None:
    dice = np.random.default_rng(2)
    values = dice.normal(size=4).astype(np.float32)
    survey = msgspec.structs.replace(surveyed(ICE, dice.normal(size=(4, 4))), values=values)
    rows = np.array(
        [list(moves.values()) for moves in worth(survey, dict(zip(survey.states, values.tolist(), strict=True)))]
    )
    backed = (np.exp(survey.logprobs.astype(np.float64)) * rows).sum(1)
    found = figures(ICE, survey, "policy_gradient", 0.8)
    assert found["bellman_residual"] == pytest.approx(np.abs(values - backed).mean(), abs=1e-7)
    assert "greedy_reward" not in found
