"""Walking on the map: the keys, what is shown, and a lesson that waits for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rlplay.algorithms.setting_values import decoded
from rlplay.scenario.loader import load
from rlplay.scenario.script import ScreenVerb, You, parse_step
from rlplay.trace.history import History
from rlplay.trace.runfile import RunReader
from rlplay.ui.app import RlplayApp
from rlplay.ui.plot.picture import Picture, Size
from rlplay.ui.plot.plot_data import PlotData
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.world.reading import reading
from rlplay.ui.world.walk_words import walk_lines
from rlplay.ui.world.world_map import WorldMap
from rlplay.worlds.walking import Walk
from rlplay.worlds.world import discounted, read_world
from tests.ui.stage import playground, pressed, settled, shown, until
from tests.ui.test_world_map import MAZE, recorded

WORLD = read_world(MAZE)


@pytest.fixture(scope="module")
def maze(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("maze"), MAZE)


@pytest.fixture(scope="module")
def source(maze: Path) -> PlotData:
    with RunReader(maze) as reader:
        update = reader.load(2)
    return PlotData(History(), shown=update, world=WORLD, settings=decoded({"gamma": 0.9}))


async def at_the_map(pilot: Any, app: RlplayApp) -> Any:
    await until(pilot, lambda: app.play.session.run.newest is not None and app.play.session.run.newest.number == 2)
    await app.play.perform("stage", "map")
    await settled(pilot)
    return app.focused


async def test_arrow_keys_walk_and_esc_ends(maze: Path) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=(160, 45)) as pilot:
        panel = await at_the_map(pilot, app)
        before = shown(panel)
        await pressed(pilot, "enter", "right", "left", "down", "down")
        assert panel.walk.path == ("a1", "b1", "a1", "a2", "a3")
        assert {shortcut.title for shortcut in panel.shortcuts} == {"walk", "end"}
        footer = app.panels.keys.render().plain
        assert "↑ → ↓ ← walk" in footer
        assert "esc end" in footer
        assert "p view" in footer
        assert "layer" not in footer
        assert panel.view.kind == "policy", "on a walk, the arrow keys change no layer"
        assert "you −.03" in panel._border_subtitle.plain
        await pressed(pilot, "escape")
        assert panel.walk is None
        assert shown(panel) == before


async def test_a_recording_can_be_walked_and_not_painted(maze: Path) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=(160, 45), notifications=True) as pilot:
        panel = await at_the_map(pilot, app)
        await pressed(pilot, "number_sign")
        assert panel.painting is None
        assert "own engine" in next(iter(app._notifications)).message
        await pressed(pilot, "enter", "right")
        assert panel.walk.moves == ("→",)


async def test_at_the_end_enter_walks_again(maze: Path) -> None:
    app = RlplayApp(ReplaySource(maze))
    async with app.run_test(size=(160, 45)) as pilot:
        panel = await at_the_map(pilot, app)
        await pressed(pilot, "enter", "down", "down", "right", "down", "right", "right")
        assert panel.walk.over
        total = discounted(panel.walk.rewards, 0.9)
        assert f"you {total:+.2f}".replace("0.", ".", 1) in panel._border_subtitle.plain
        await pressed(pilot, "right")
        assert len(panel.walk.moves) == 6, "the walk is over"
        await pressed(pilot, "enter")
        assert panel.walk.moves == ()


def test_the_policys_mean_is_that_of_its_walks(source: PlotData) -> None:
    found = reading(source)
    assert found is not None
    returns = []
    assert source.shown is not None
    assert source.shown.sampled is not None
    for row in range(source.shown.completions):
        squares = source.shown.sampled.states.get(row, [])
        returns.append(sum(WORLD.reward(square) * 0.9**k for k, square in enumerate(squares)))
    assert found.mean_return == pytest.approx(np.mean(returns))
    ended = Walk(WORLD, "a1")
    for move in "↓↓→↓→→":
        ended = ended.on(move)
    text = "\n".join(line.plain for line in walk_lines(ended, found, 200))
    assert "★ reached" in text
    assert "You d4 · 6 moves" in text
    assert f"mean of the {len(returns)} walks of update 2" in text


@pytest.mark.parametrize("width", [30, 76, 160])
def test_the_lines_of_a_walk_fit(source: PlotData, width: int) -> None:
    found = reading(source)
    assert found is not None
    walked = Walk(WORLD, "a1")
    for move in "↑↑←←↑↑←←↑↑←←":
        walked = walked.on(move)
        assert all(line.cell_length <= width for line in walk_lines(walked, found, width))
    assert "… " in walk_lines(walked, found, 76)[0].plain


def test_the_walker_is_on_its_square_at_every_size(source: PlotData) -> None:
    walked = Walk(WORLD, "a1").on("→").on("→")
    for size in (Size(40, 4), Size(40, 9), Size(100, 32)):
        drawn = WorldMap().draw(replace(source, walk=walked), size, False)
        assert isinstance(drawn, Picture)
        marks = [str(span.style) for span in drawn.content.spans]
        assert any("reverse" in mark or "$accent" in mark for mark in marks)


async def test_a_run_without_squares_has_nothing_to_walk_on() -> None:
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.status()
        await settled(pilot)
        await app.play.perform("walk")
        assert all(panel.walk is None for panel in app.panels.curves.panels)


@pytest.mark.parametrize("ends", [("down", "down", "down", "right", "right", "right"), ("right", "escape")])
async def test_a_lesson_waits_for_the_walk_to_end(ends: tuple[str, ...]) -> None:
    scenario = msgspec.structs.replace(load("grid"), script=[])
    script = [{"you": {"say": "Walk to the star.", "walk": None}}, {"say": "There."}]
    app, source = playground(script=script, scenario="grid", scenario_text=msgspec.yaml.encode(scenario).decode())
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        await until(pilot, lambda: app.teaching.lesson.learner.at_work)
        source.update(1)
        await settled(pilot)
        await app.play.perform("stage", "map")
        await settled(pilot)
        await pressed(pilot, "enter")
        assert app.teaching.lesson.learner.at_work, "a walk that has begun is not done"
        await pressed(pilot, *ends)
        await until(pilot, lambda: not app.teaching.lesson.learner.at_work)


async def test_when_the_learner_gives_up_the_best_walk_is_shown() -> None:
    scenario = msgspec.structs.replace(load("grid"), script=[])
    script = [{"you": {"say": "Walk to the star.", "walk": None}}, {"say": "There."}]
    app, source = playground(script=script, scenario="grid", scenario_text=msgspec.yaml.encode(scenario).decode())
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        await pressed(pilot, "t")
        await until(pilot, lambda: app.teaching.lesson.learner.at_work)
        source.update(1)
        await settled(pilot)
        await pressed(pilot, "t")
        await until(pilot, lambda: any(panel.walk is not None for panel in app.panels.curves.panels))
        walked = [panel.walk for panel in app.panels.curves.panels if panel.walk is not None]
        assert [len(each.moves) for each in walked] == [6]
        assert walked[0].square == "d4"


def test_a_script_takes_the_verb() -> None:
    assert parse_step({"you": {"say": "Walk.", "walk": None}}) == You("Walk.", ScreenVerb("walk", None))
