"""Worlds as data: what moves do, what is refused, and what is optimal."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rlplay.worlds.planning import evaluate, plan
from rlplay.worlds.world import World, WorldError, read_world

GRID = {"map": ["S...", "....", "....", "...G"]}
MAZE = {"map": ["S...", ".O.O", "...O", "O..G"]}


def uniform(world: World) -> dict[str, dict[str, float]]:
    return {state: dict.fromkeys(world.actions, 1 / len(world.actions)) for state in world.states}


def test_a_move_goes_one_square_and_the_edge_stops_it() -> None:
    world = read_world({"map": ["S.#", "..G"]})
    assert [world.moved("a1", move) for move in "↑→↓←"] == ["a1", "b1", "a2", "a1"]
    assert world.moved("b1", "→") == "b1", "c1 is a wall"


def test_reaching_the_goal_ends_the_episode_and_pays() -> None:
    world = read_world({"map": ["SG", "O2"], "goal": 3, "hole": -2})
    assert world.outcomes("a1", "→") == [(1.0, "b1", 3.0, True)]
    assert world.outcomes("a1", "↓") == [(1.0, "a2", -2.0, True)]
    assert world.outcomes("b1", "↓") == [(1.0, "b2", 2.0, False)], "a digit is a reward of that size"
    assert world.outcomes("a1", "↑") == [(1.0, "a1", -0.01, False)]


def test_a_slip_takes_each_other_move_equally_often() -> None:
    world = read_world({"map": ["...", ".S.", "..."], "slip": 0.3})
    assert {o.state: round(o.probability, 12) for o in world.outcomes("b2", "→")} == {
        "c2": 0.7,
        "b1": 0.1,
        "b3": 0.1,
        "a2": 0.1,
    }
    drawn = [world.after("b2", "→", chance).state for chance in np.linspace(0, 1, 10_000, endpoint=False)]
    assert drawn.count("c2") == 7000
    assert drawn.count("b1") == drawn.count("a2") == 1000
    assert world.after("b2", "→", np.nextafter(1, 0)).state != "c2", "0.7 + 0.1 + 0.1 + 0.1 is less than 1"


def test_a_hidden_square_has_no_name() -> None:
    world = read_world({**GRID, "hidden": ["b2"]})
    assert [world.observed(s) for s in ("b2", "b3")] == ["?", "b3"]
    assert {read_world({**GRID, "hidden": True}).observed(s) for s in world.states} == {"?"}


def test_value_iteration_finds_the_value_of_the_shortest_way() -> None:
    found = plan(read_world(GRID), 0.99)
    by_hand = sum(-0.01 * 0.99**k for k in range(5)) + 0.99**5
    assert found.values["a1"] == pytest.approx(by_hand, abs=1e-12)
    assert found.values["a1"] == pytest.approx(0.902, abs=5e-4), "the figure of the source text"
    assert found.best("d3") == "↓"


def test_values_of_the_corridor_are_its_discounted_returns() -> None:
    world = read_world({"map": ["S123"], "moves": ["→"], "steps": 3})
    # The end after three moves is not part of the plan, and the last square goes on paying 3: so close it by hand.
    returns = [sum(reward * gamma**k for k, reward in enumerate((1, 2, 3))) for gamma in (0, 0.5, 0.9, 0.99, 1)]
    assert [round(each, 2) for each in returns] == [1.0, 2.75, 5.23, 5.92, 6.0]
    assert [world.reward(square) for square in ("b1", "c1", "d1")] == [1, 2, 3]


def test_only_moves_that_begin_on_ice_slip_as_ice_does() -> None:
    world = read_world({"map": ["...", "SI.", "..."], "ice": 0.3})
    assert world.after("a2", "→", 0.999).state == "b2", "the floor does not slip"
    reached = {outcome.state: outcome.probability for outcome in world.outcomes("b2", "→")}
    assert reached == pytest.approx({"c2": 0.7, "b1": 0.1, "b3": 0.1, "a2": 0.1})
    frozen = world.repainted({"c1": "I"})
    assert len(frozen.outcomes("c1", "↓")) == 3, "down, left, and twice against the edge"
    assert plan(frozen, 0.9).values["c1"] < 0


@pytest.mark.parametrize("slip", [0.0, 0.2])
def test_a_policys_values_equal_those_of_many_backups(slip: float) -> None:
    world, gamma = read_world({**MAZE, "slip": slip}), 0.9
    exact = evaluate(world, uniform(world), gamma)
    values = dict.fromkeys(exact, 0.0)
    for _ in range(400):
        values = {
            s: sum(
                0.25 * p * (r + (0 if over else gamma * values[there]))
                for a in world.actions
                for p, there, r, over in world.outcomes(s, a)
            )
            for s in values
        }
    assert exact == pytest.approx(values, abs=1e-10)


def test_no_policy_beats_the_plan() -> None:
    world, gamma = read_world({"map": ["S.", ".G"], "slip": 0.1}), 0.9
    best = plan(world, gamma).values
    going = [s for s in world.states if not world.ends(s)]
    for choice in itertools.product(world.actions, repeat=len(going)):
        policy = {s: {move: 1.0} for s, move in zip(going, choice, strict=True)}
        values = evaluate(world, policy, gamma)
        assert all(values[s] <= best[s] + 1e-9 for s in going)


def test_a_policy_that_never_ends_has_no_values_without_discount() -> None:
    world = read_world({"map": ["S.G"]})
    for stays in ({"↑": 1.0}, dict.fromkeys("↑↓←", 1 / 3), {"↑": 0.7, "↓": 0.2, "←": 0.1}):
        with pytest.raises(ValueError, match="not finite"):
            evaluate(world, dict.fromkeys(world.states, stays), 1.0)


def test_a_bandit_ends_after_one_choice() -> None:
    world = read_world({"arms": {"1": -0.1, 2: 1}, "contexts": 3})
    assert world.states == ("s1", "s2", "s3")
    assert world.outcomes("s2", "2") == [(1.0, "s2", 1.0, True)]
    assert plan(world, 1.0).values == {"s1": 1.0, "s2": 1.0, "s3": 1.0}


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (3, "mapping"),
        ({}, "map or arms"),
        ({**GRID, "arms": {"a": 1, "b": 0}}, "map or arms"),
        ({**GRID, "gole": 1}, "'gole'"),
        ({"map": []}, "map or arms"),
        ({"map": ["S.", "."]}, "row 2"),
        ({"map": ["S", "x"]}, "'x'"),
        ({"map": [""]}, "1 to 9"),
        ({"map": ["..G"]}, "start"),
        ({"map": ["S" * 10]}, "1 to 9"),
        ({"map": ["S"] * 10}, "1 to 9"),
        ({**GRID, "moves": ["up"]}, "moves"),
        ({**GRID, "moves": []}, "moves"),
        ({**GRID, "moves": ["→", "→"]}, "moves"),
        ({**GRID, "slip": 1.0}, "slip"),
        ({**GRID, "slip": -0.1}, "slip"),
        ({**GRID, "slip": "often"}, "slip"),
        ({**GRID, "ice": 1.0}, "ice"),
        ({**GRID, "hidden": ["e9"]}, "e9"),
        ({**GRID, "steps": 0}, "steps"),
        ({**GRID, "steps": 1001}, "steps"),
        ({**GRID, "goal": float("nan")}, "goal"),
        ({**GRID, "hole": -1_000_001}, "hole"),
        ({**GRID, "step": float("inf")}, "step"),
        ({"arms": {"a": 1}}, "two arms"),
        ({"arms": {"ab": 1, "c": 0}}, "'ab'"),
        ({"arms": {"s": 1, "c": 0}}, "'s'"),
        ({"arms": {"a": float("nan"), "c": 0}}, "arm a"),
        ({"arms": {"a": 1_000_001, "c": 0}}, "arm a"),
        ({"arms": {"a": 1, "c": 0}, "contexts": 0}, "contexts"),
        ({"arms": {"a": 1, "c": 0}, "contexts": 257}, "contexts"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused_in_one_line(content: Any, named: str) -> None:
    with pytest.raises(WorldError) as raised:
        read_world(content)
    assert named in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [
        {"map": ["S"], "steps": 1, "slip": 0, "goal": 1e6, "hole": -1e6},
        {"map": ["S........", *["........."] * 7, "#O123456G"], "steps": 1000, "slip": 0.99},
        {"arms": {"a": 1e6, "c": -1e6}, "contexts": 1},
        {"arms": {"a": 0, "c": 1}, "contexts": 256},
    ],
)
def test_the_limits_themselves_are_allowed(content: dict[str, Any]) -> None:
    world = read_world(content)
    squares = "".join(world.map).replace("#", "")
    assert len(world.states) == (len(squares) or world.contexts)


def test_paint_changes_what_a_square_is_or_earns_and_nothing_else() -> None:
    world = read_world({"map": ["S.2G"], "goal": 3})
    painted = world.repainted({"c1": "G", "d1": -1e6, "b1": 0.25}).repainted({"d1": "."})
    assert [painted.reward(square) for square in ("a1", "b1", "c1", "d1")] == [-0.01, 0.25, 3, -1e6]
    assert [painted.ends(square) for square in ("a1", "b1", "c1", "d1")] == [False, False, True, False]
    assert [world.reward(square) for square in ("a1", "b1", "c1", "d1")] == [-0.01, -0.01, 2, 3]
    assert world.repainted({}) is world
    with pytest.raises(WorldError, match="from -1e6 to 1e6"):
        world.repainted({"b1": -1_000_001})


def test_an_episode_has_a_token_for_each_move_and_each_square_a_bandits_has_one() -> None:
    assert read_world({**GRID, "steps": 7}).tokens == 14
    assert read_world({"arms": {"a": 1, "b": 0}, "steps": 7}).tokens == 1


@pytest.mark.parametrize("rows", [["S1", 23], "S1 23", ["S 1", "2 3"]])
def test_a_map_may_be_written_with_blanks_as_text_or_with_numbers(rows: Any) -> None:
    assert read_world({"map": rows}).map == ("S1", "23")
