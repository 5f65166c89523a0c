"""Painting the map: by mouse, by keys, what is sent to the engine, and what the map shows at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from rlplay.link.messages import Advance, Rewind, Set
from rlplay.scenario.loader import load
from rlplay.scenario.script import ScreenVerb, You, parse_step
from rlplay.trace.records import Changed
from rlplay.ui.app import RlplayApp
from rlplay.ui.plot.picture import Size
from rlplay.ui.world.brush_words import brush_lines, brush_places
from rlplay.ui.world.world_map import WorldMap
from rlplay.worlds.painting import BRUSHES, Painting
from rlplay.worlds.planning import plan
from rlplay.worlds.world import place, read_world
from tests.ui.stage import Fed, playground, pressed, settled, shown, until

GRID = load("grid")


@asynccontextmanager
async def painting(
    size: tuple[int, int] = (160, 45), script: list[dict[str, Any]] | None = None
) -> AsyncIterator[tuple[RlplayApp, Fed, Any, Any]]:
    """The grid world on the screen, its map with the brushes."""
    text = msgspec.yaml.encode(msgspec.structs.replace(GRID, script=[])).decode()
    app, source = playground(script, scenario="grid", scenario_text=text)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await app.play.perform("stage", "map")
        await settled(pilot)
        await pressed(pilot, "number_sign")
        panel = app.focused
        assert panel.painting is not None
        yield app, source, pilot, panel


def sent(source: Fed) -> list[Any]:
    return [command.changes["squares"] for command in source.commands if isinstance(command, Set)]


def cell(panel: Any, square: str) -> tuple[int, int]:
    """A cell of a square, from the corner of the panel."""
    inner = panel.content_region.offset - panel.region.offset
    size = Size(*panel.content_size)
    world = panel.painting.world
    for y in range(size.height):
        for x in range(size.width):
            if panel.view.square_at(world, size, x, y) == square:
                row, column = place(square)
                return x + inner.x + 2 * (column >= 0), y + inner.y + (row >= 0)
    raise AssertionError(square)


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_drag_is_one_stroke(size: tuple[int, int]) -> None:
    async with painting(size) as (_, source, pilot, panel):
        await pilot.mouse_down(panel, offset=cell(panel, "b2"))
        await pilot.hover(panel, offset=cell(panel, "c2"))
        assert sent(source) == [], "not before the mouse is let go"
        assert panel.painting.squares == {"b2": "#", "c2": "#"}, "and yet it is drawn"
        await pilot.mouse_up(panel, offset=cell(panel, "c2"))
        await settled(pilot)
        assert sent(source) == [{"b2": "#", "c2": "#"}]
        assert "▒" in shown(panel)
        await pressed(pilot, "z")
        assert sent(source)[-1] == {}
        assert not any(isinstance(command, Rewind) for command in source.commands), "z took the stroke back, no update"


async def test_keys_move_choose_and_paint() -> None:
    async with painting() as (_, source, pilot, panel):
        await pressed(pilot, "right", "right", "4")
        assert sent(source) == [{"c1": "O"}]
        await pressed(pilot, "down", "enter")
        assert sent(source)[-1] == {"c1": "O", "c2": "O"}
        await pressed(pilot, "plus", "plus", "6")
        assert sent(source)[-1] == {"c1": "O", "c2": 1.5}
        await pressed(pilot, "0")
        assert sent(source)[-1] == {"c1": "O"}
        await pressed(pilot, "escape")
        assert panel.painting is None
        assert panel.view == WorldMap(), "the layer from before is back"
        commands = len(source.commands)
        await pressed(pilot, "5", "plus")
        assert len(source.commands) == commands


async def test_a_click_on_a_brush_takes_it() -> None:
    async with painting() as (_, source, pilot, panel):
        inner = panel.content_region.offset - panel.region.offset
        size = Size(*panel.content_size)
        where = next(
            (x, y) for y in range(size.height) for x in range(size.width)
            if panel.view.brush_at(panel.painting, size, x, y) == 5
        )  # fmt: skip
        await pilot.click(panel, offset=(where[0] + inner.x, where[1] + inner.y))
        assert panel.painting.brush == 5
        await pilot.click(panel, offset=cell(panel, "b1"))
        await settled(pilot)
        assert sent(source) == [{"b1": "G"}]


async def test_the_best_moves_follow_at_once_and_the_run_goes_on() -> None:
    async with painting() as (app, source, pilot, panel):
        assert panel.view.kind == "optimal"
        before = shown(panel)
        await pressed(pilot, "right", "5")
        assert shown(panel) != before, "nothing has come back from the engine yet"
        world = read_world({"map": ["S...", "....", "....", "...G"]}).repainted({"b1": "G"})
        assert f"best {plan(world, panel.source.settings.gamma).values['a1']:.0f}" in panel._border_subtitle.plain
        source.records([Changed(update=1, phase="sample", name="squares", value={"b1": "G"}, previous={})])
        await settled(pilot)
        assert not app.screen.query("Toast"), "a stroke is on the map, and no message covers it"
        await pressed(pilot, "escape")
        assert panel.source.world.kind("b1") == "G", "what was painted stays, before another update"
        await pressed(pilot, "u")
        assert any(isinstance(command, Advance) for command in source.commands)
        assert app.play.panels.curves.details.squares == {"b1": "G"}


async def test_bad_paint_gets_one_line() -> None:
    async with painting() as (_, source, pilot, panel):
        await pressed(pilot, "2")
        assert sent(source) == [], "the start cannot be painted over"
        assert "start a1" in panel._border_subtitle.plain
        await pressed(pilot, "right", "2", "left", "down", "2")
        assert sent(source)[-1] == {"b1": "#", "a2": "#"}
        assert "No way leads from a1" in panel._border_subtitle.plain


async def test_a_walk_is_in_one_world() -> None:
    async with painting() as (_, source, pilot, panel):
        await pressed(pilot, "right", "down", "2", "escape", "enter", "right")
        assert panel.walk.path == ("a1", "b1")
        source.records([Changed(update=1, phase="sample", name="squares", value={"b2": "#"}, previous={})])
        await settled(pilot)
        await pressed(pilot, "down")
        assert panel.walk.path == ("a1",), "begun again in the painted world"
        assert panel.walk.world.kind("b2") == "#"
        await pressed(pilot, "number_sign")
        assert panel.walk is None
        await pressed(pilot, "escape")
        assert panel.walk is None


async def test_going_back_ends_painting() -> None:
    async with painting() as (app, source, pilot, panel):
        source.update(1)
        await settled(pilot)
        await pressed(pilot, "right", "2")
        await app.play.perform("rewind", 0)
        assert panel.painting is None


async def test_a_lesson_waits_for_a_stroke() -> None:
    script = [{"you": {"say": "Paint a wall.", "paint": None}}, {"say": "There."}]
    assert parse_step(script[0]) == You("Paint a wall.", ScreenVerb("paint", None))
    async with painting(script=script) as (app, _, pilot, panel):
        await pressed(pilot, "t")
        await until(pilot, lambda: app.teaching.lesson.learner.at_work)
        await app.play.perform("paint")
        assert app.teaching.lesson.learner.at_work, "brushes alone paint nothing"
        panel.focus()
        await pressed(pilot, "right", "2")
        await until(pilot, lambda: not app.teaching.lesson.learner.at_work)


async def test_what_has_no_engine_or_no_map_cannot_be_painted() -> None:
    app, source = playground()
    async with app.run_test(size=(120, 35)) as pilot:
        source.status()
        await settled(pilot)
        await pressed(pilot, "number_sign")
        assert all(panel.painting is None for panel in app.panels.curves.panels)
        assert source.commands == []


@pytest.mark.parametrize("width", [30, 76, 160])
def test_every_brush_is_where_its_words_are(width: int) -> None:
    found = Painting(read_world({"map": ["S.G"]}), {}, "a1")
    lines = brush_lines(found, width)
    assert all(line.cell_length <= width for line in lines)
    for number, (line, left, right) in brush_places(found, width).items():
        assert lines[line].plain[left:right].startswith(str(number))
        assert lines[line].plain[left:right].endswith(BRUSHES[number][1])


async def test_a_click_beside_the_walker_is_a_step() -> None:
    async with painting() as (_, _, pilot, panel):
        places = {square: cell(panel, square) for square in ("b1", "b2", "d4")}
        await pressed(pilot, "escape", "enter")
        await pilot.click(panel, offset=places["b1"])
        await pilot.click(panel, offset=places["d4"])
        await pilot.click(panel, offset=places["b2"])
        await settled(pilot)
        assert panel.walk.moves == ("→", "↓"), "a square elsewhere is no step"
