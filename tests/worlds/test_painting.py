"""Strokes of paint: what they make of the setting `squares`, what is refused, and what the engine makes of the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlplay.algorithms.setting_values import check
from rlplay.worlds.painting import AS_DRAWN, BRUSHES, REWARD, Painting, dead_end
from rlplay.worlds.planning import dynamics, plan
from rlplay.worlds.world import WorldError, read_world
from tests.worlds.value_run import Run

GRID = {"map": ["S..", ".#.", "..G"]}
WORLD = read_world(GRID)
SQUARES = [f"{letter}{number}" for number in (1, 2, 3) for letter in "abc"]
strokes = st.lists(
    st.tuples(st.sampled_from(sorted(BRUSHES)), st.lists(st.sampled_from(SQUARES), min_size=1, max_size=3)), max_size=8
)


def painted(*wanted: tuple[int, list[str]], reward: float = 0.5) -> Painting:
    found = Painting(WORLD, {}, "a1", reward=reward)
    for brush, over in wanted:
        found = Painting(found.plain, found.squares, "a1", brush, reward, found.earlier).stroke(over)
    return found


@given(strokes)
def test_every_painting_is_a_setting_that_the_engine_takes(wanted: list[tuple[int, list[str]]]) -> None:
    found = painted(*wanted)
    assert check("squares", dict(found.squares)) == dict(found.squares)
    again = WORLD.repainted(found.squares)
    assert again.map == found.world.map
    rules, theirs = dynamics(found.world), dynamics(again)
    assert (rules.rewards == theirs.rewards).all()
    assert (rules.leads == theirs.leads).all()
    assert found.world.starts == ("a1",)


@given(strokes)
def test_undoing_every_stroke_leads_back(wanted: list[tuple[int, list[str]]]) -> None:
    found = painted(*wanted)
    while found.earlier:
        before = found.squares
        found = found.undone()
        assert found.squares != before
    assert found.squares == {}
    assert found.undone() == found


@given(strokes)
def test_the_brush_that_takes_paint_away_leaves_the_world_as_drawn(wanted: list[tuple[int, list[str]]]) -> None:
    found = painted(*wanted, (AS_DRAWN, SQUARES))
    assert found.squares == {}
    assert found.world is WORLD


def test_paint_that_changes_nothing_is_no_paint() -> None:
    assert painted((5, ["c3"]), (2, ["b2"]), (1, ["a2"])).squares == {}
    assert painted((2, ["a2"]), (1, ["a2"])).squares == {}
    assert painted((REWARD, ["a2"]), reward=-1.5).squares == {"a2": -1.5}


def test_the_start_cannot_be_painted_over_and_one_line_says_so() -> None:
    found = painted((2, ["a2"])).stroke(["a1"])
    assert found.squares == {"a2": "#"}
    assert "start a1" in found.problem
    assert "\n" not in found.problem
    with pytest.raises(WorldError):
        WORLD.repainted({"a1": "#"})
    assert found.undone().problem == ""


@pytest.mark.parametrize(
    ("wanted", "note"),
    [
        ((2, ["a2", "b1"]), "No way leads from a1 to a star."),
        ((4, ["a2", "b1"]), "No way leads from a1 to a star."),
        ((1, ["c3"]), "There is no star on the map."),
        ((2, ["a2"]), ""),
        ((5, ["b1"]), ""),
    ],
)
def test_a_world_without_a_way_to_a_star_gets_one_line(wanted: tuple[int, list[str]], note: str) -> None:
    assert painted(wanted).note == note


def test_a_slip_may_be_the_only_way() -> None:
    assert dead_end(read_world({"map": ["S.", "G."], "moves": ["→"]}))
    assert dead_end(read_world({"map": ["S.", "G."], "moves": ["→", "↓"], "slip": 0.1})) == ""


def test_the_optimal_values_follow_a_stroke() -> None:
    near, far = painted((5, ["b1"])).world, painted((2, ["b1"])).world
    assert plan(near, 0.9).values["a1"] == pytest.approx(1)
    assert plan(far, 0.9).values["a1"] == pytest.approx(plan(WORLD, 0.9).values["a1"]), "the other way is as long"
    icy = painted((3, ["a1", "a2", "b1"])).world  # the start stays
    assert icy.kind("a2") == "I"
    assert plan(icy, 0.9).values["a1"] < plan(WORLD, 0.9).values["a1"]


def test_the_engine_walks_in_the_painted_world_from_its_next_update_on(tmp_path: Path) -> None:
    found = painted((5, ["b1"]), (2, ["a2"]))
    run = Run(tmp_path, {**GRID, "steps": 30}).go(1)
    run.driver.set({"squares": dict(found.squares)})
    run.go(1)
    before, after = (run.updates[number] for number in (1, 2))
    assert before.sampled is not None
    assert after.sampled is not None
    assert any("a2" in path for path in before.sampled.states.values())
    for path in after.sampled.states.values():
        assert {*path} <= {"a1", "b1"}, "a wall below the start, the star beside it"
        assert path[-1] == "b1" or len(path) == 30
