"""A slider shows what another value would mean, step by step, and only then uses it."""

from __future__ import annotations

import math

import pytest

from rlplay.link.messages import Set
from rlplay.trace.questions import Peek, Peeked, WhatIf
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.sliders.quantity import chance_to_win, quantity
from rlplay.ui.sliders.slider_screen import SliderScreen
from rlplay.ui.sliders.slider_track import SliderTrack
from rlplay.verbs import SLIDERS
from tests.recorded import SETTINGS
from tests.ui.stage import on_screen, settled


@pytest.mark.parametrize(("gap", "chance"), [(0.85, 0.70), (0.0, 0.5), (-0.85, 0.30), (4.0, 0.98)])
def test_the_gap_gives_bradley_and_terry_s_chance(gap: float, chance: float) -> None:
    assert chance_to_win(gap) == pytest.approx(chance, abs=0.005)
    assert chance_to_win(gap) == pytest.approx(1 / (1 + math.exp(-gap)))


@pytest.mark.parametrize("name", SLIDERS)
def test_each_begins_where_the_run_is_and_stays_within_its_ends(name: str) -> None:
    found = quantity(name, SETTINGS)
    assert found.begins == float(getattr(SETTINGS, name, 0.0))
    assert found.low <= found.begins <= found.high
    assert found.snapped(99) == found.high
    assert found.snapped(-99) == found.low
    assert found.snapped(found.low + 2.4 * found.step) == pytest.approx(found.low + 2 * found.step)


async def test_the_gap_moves_with_keys_and_mouse_and_changes_nothing() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("slider", "gap")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, SliderScreen)
        for _ in range(3):
            await pilot.press("shift+right")
        await pilot.press("right", "right")
        assert screen.value == pytest.approx(0.85)
        assert "0.70" in str(screen.query_one(SteadyStatic).content)
        track = screen.query_one(SliderTrack)
        await pilot.mouse_down(track, offset=(track.column(-2.0), 0))
        await pilot.mouse_up(track, offset=(track.column(-2.0), 0))
        assert screen.value == pytest.approx(-2.0, abs=0.1)
        await pilot.press("enter")
        assert not any(isinstance(each, Set) for each in source.commands)


async def test_a_setting_is_previewed_with_each_step_and_used_on_enter() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("slider", "gamma")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, SliderScreen)
        await pilot.press("left")
        await settled(pilot)
        asked = [each.changes for each in source.commands if isinstance(each, WhatIf)]
        assert asked == [{"gamma": screen.value}]
        await pilot.press("enter")
        await settled(pilot)
        assert source.commands[-1] == Set({"gamma": screen.value})


async def test_the_temperature_asks_the_model() -> None:
    async with on_screen(1, size=(120, 35)) as (app, source, pilot):
        await app.play.perform("slider", "temperature")
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, SliderScreen)
        await pilot.press("left")
        await settled(pilot)
        question = source.commands[-1]
        assert isinstance(question, Peek)
        assert question.temperature == screen.value
        source.put(Peeked(question.prefix, temperature=screen.value, top_ids=[3, 4], top=[0.9, 0.1],
                          ref_top=[0.5, 0.5], pieces={3: "yes", 4: "no"}, entropy=0.325))  # fmt: skip
        await settled(pilot)
        app.refresher.everything()
        said = str(screen.query_one(SteadyStatic).content)
        assert '"yes"' in said
        assert ".9" in said
        assert f"temperature {screen.value:g}" in said
