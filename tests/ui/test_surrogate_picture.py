"""The surrogate's picture: the engine's own function, its walls, and the tokens beyond them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from textual.widgets import Static

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.settings import Settings
from rlplay.link.messages import Set
from rlplay.trace.pulls import pulls
from rlplay.trace.update import Update
from rlplay.ui.surrogate.picture import Frame, drawn
from rlplay.ui.surrogate.surrogate_screen import SurrogatePlot, SurrogateScreen
from rlplay.ui.surrogate.walls import Walls, beyond, has_picture, objective
from tests.recorded import SETTINGS, synthetic_update
from tests.ui.stage import on_screen, settled


def an_update() -> Update:
    update = Update(1)
    for record in synthetic_update(1):
        update.add(record)
    return update


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_curve_is_ppo_s_objective_and_flat_beyond_one_wall(sign: float) -> None:
    ratio = np.linspace(0.1, 2.0, 96)
    found = objective(SETTINGS, Walls(0.1, 0.3), ratio, sign)
    assert found == pytest.approx(np.minimum(ratio * sign, np.clip(ratio, 0.9, 1.3) * sign))


def test_beyond_the_walls_are_the_tokens_that_training_left_without_a_gradient() -> None:
    update = an_update()
    found = pulls(update)
    assert found is not None
    assert found.silent.any(), "a run in which nothing is clipped shows nothing"
    assert np.array_equal(beyond(SETTINGS, Walls.of(SETTINGS), found), found.silent)
    assert beyond(SETTINGS, Walls(0.0, 0.0), found).sum() > found.silent.sum()


@pytest.mark.parametrize(
    ("name", "seen"), [("grpo", True), ("dapo", True), ("cispo", False), ("reinforce", False), ("sapo", True)]
)
def test_only_functions_of_ratio_and_advantage_have_a_picture(name: str, seen: bool) -> None:
    assert has_picture(resolve({"algorithm": name})) == seen


def test_one_setting_moves_both_walls_until_they_part() -> None:
    plain = msgspec.structs.replace(SETTINGS, epsilon=0.2, epsilon_high=None)
    parted = msgspec.structs.replace(SETTINGS, epsilon=0.2, epsilon_high=0.28)
    assert Walls(0.3, 0.3).changes(plain) == {"epsilon": 0.3}
    assert Walls(0.2, 0.3).changes(plain) == {"epsilon_high": 0.3}
    assert Walls(0.1, 0.28).changes(parted) == {"epsilon": 0.1}
    assert Walls(0.2, 0.2).changes(plain) == {}
    assert Walls(0.2, 0.2).moved(False, 1.7, False) == Walls(1.0, 0.2), "a ratio is never below 0"


@pytest.mark.parametrize("size", [(60, 12), (140, 40)])
def test_a_wall_stands_at_its_ratio(size: tuple[int, int]) -> None:
    walls = Walls(0.2, 0.2)
    frame = Frame.of(*size, walls, None)
    lines = drawn(frame, SETTINGS, walls, walls, None, None).plain.split("\n")
    rule = next(line for line in lines if "─" in line)
    places = [x for x, sign in enumerate(rule) if sign == "◆"]
    assert [frame.ratio_at(x) for x in places] == pytest.approx(
        [0.8, 1.2, 0.8, 1.2], abs=(1 + frame.reach) / frame.width
    )
    assert len(lines) == size[1]


async def test_keys_move_the_walls_count_tokens_and_change_the_run() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await pilot.press("K")
        screen = app.screen
        assert isinstance(screen, SurrogateScreen)
        begun = screen.walls
        await pilot.press("left", "left")
        assert screen.walls.low == pytest.approx(begun.low - 0.02)
        found = pulls(an_update())
        assert found is not None
        said = str(screen.query_one("#said", Static).content)
        assert f"{int(beyond(SETTINGS, screen.walls, found).sum()):,} would be" in said
        await pilot.press("enter")
        await settled(pilot)
        assert source.commands[-1] == Set({"epsilon": screen.walls.low})


async def test_a_wall_follows_the_mouse() -> None:
    async with on_screen(1, size=(120, 35)) as (app, _source, pilot):
        await pilot.press("K")
        screen = app.screen
        assert isinstance(screen, SurrogateScreen)
        plot = screen.query_one(SurrogatePlot)
        x = plot.frame.column(1.35)
        await pilot.mouse_down(plot, offset=(plot.frame.column(1.2), 3))
        await pilot.hover(plot, offset=(x, 3))
        await pilot.mouse_up(plot, offset=(x, 3))
        assert screen.walls.high == pytest.approx(plot.frame.ratio_at(x) - 1, abs=0.006)


def test_a_surrogate_without_walls_says_so() -> None:
    plain: Settings = resolve({"algorithm": "grpo", "surrogate": "ratio"})
    assert has_picture(plain)
    assert not plain.surrogate_row.band
