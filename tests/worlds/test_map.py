"""The map of a world: every number on it is whole, and a coin can be seen before and after somebody has been there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlplay.algorithms.setting_values import decoded
from rlplay.trace.history import History
from rlplay.ui.parts.line_panel import CORNERS
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.world.world_map import MAPS
from rlplay.worlds.chart import chart
from rlplay.worlds.world import read_world
from tests.worlds.test_training import GRID, trained

PANEL = 40 - CORNERS
"""Cells for a title on a panel of 40 columns, a third of a screen of 120."""
CORRIDOR = {"map": ["S12G"], "goal": 3, "moves": ["→"]}


def drawn(view: Any, source: PlotData, size: Size = Size(38, 8)) -> list[str]:  # noqa: B008
    picture = view.draw(source, size, False)
    assert isinstance(picture, Picture)
    return picture.content.plain.split("\n")


def test_a_coin_is_on_the_map_before_the_first_move_and_after_it(tmp_path: Path) -> None:
    world = read_world(CORRIDOR)
    assert drawn(MAPS[0], PlotData(History(), world=world))[0].split() == ["1", "·", "1", "2", "★"]
    (update,) = trained(tmp_path, CORRIDOR, 1, {"algorithm": "reinforce", "gamma": 0.9})
    first, second = drawn(MAPS[0], PlotData(History(), shown=update, world=world, settings=decoded({"gamma": 0.9})))[:2]
    assert "".join(first.split()) == "1→1.001→1.002→1.00★"
    assert second.split() == ["+5.23", "×8", "+4.70", "×8", "+3", "×8"]


@pytest.mark.parametrize("algorithm", ["reinforce", "ppo"])
def test_the_texts_on_a_maps_border_fit_a_small_panel(tmp_path: Path, algorithm: str) -> None:
    world = read_world(GRID)
    (update,) = trained(tmp_path, GRID, 1, {"algorithm": algorithm, "gamma": 0.99})
    source = PlotData(History(), shown=update, world=world, settings=decoded({"gamma": 0.99}))
    for view in MAPS:
        above, below = view.titles(source, None, False)
        assert len(above.plain) <= PANEL
        assert len(below.plain) <= PANEL
        assert below.plain.endswith("best .90")


@pytest.mark.parametrize(("width", "parts"), [(38, 2), (78, 3)])
def test_a_map_with_one_line_for_each_square_shows_moves_and_values(tmp_path: Path, width: int, parts: int) -> None:
    world = read_world(GRID)
    (update,) = trained(tmp_path, GRID, 1, {"algorithm": "ppo", "gamma": 0.99})
    source = PlotData(History(), shown=update, world=world, settings=decoded({"gamma": 0.99}))
    squares = chart(world, update).squares
    rows = drawn(MAPS[0], source, Size(width, 7))
    found = rows[0].split()[1:]
    assert len(found) == 4 * parts
    for name, shown in zip(("a1", "b1", "c1", "d1"), found[parts - 1 :: parts], strict=True):
        value = squares[name].value
        assert value is not None
        assert float(shown.replace("−", "-")) == pytest.approx(value, abs=0.005)
    assert rows[4].split() == ["a", "b", "c", "d"]
    for view in MAPS[1:]:
        assert len("".join(drawn(view, source, Size(width, 7))[0].split())) > 12


def test_the_narrowest_squares_keep_their_values(tmp_path: Path) -> None:
    plain = {"map": ["S.....G"]}
    world = read_world(plain)
    (update,) = trained(tmp_path, plain, 1, {"algorithm": "ppo", "gamma": 0.99})
    moves, values = drawn(
        MAPS[0], PlotData(History(), shown=update, world=world, settings=decoded({"gamma": 0.99})), Size(36, 8)
    )[:2]
    assert len(moves.split()) == 8
    squares = chart(world, update).squares
    for shown, name in zip(values.split(), "abcdef", strict=True):
        value = squares[f"{name}1"].value
        assert value is not None
        assert float(shown.replace("−", "-")) == pytest.approx(value, abs=0.051)
