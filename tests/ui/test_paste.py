"""Pasting a share code: its changes are listed first, then applied as if by hand."""

import pytest
from textual.widgets import Input, Static

from rlplay.algorithms.apply import resolve
from rlplay.link.messages import Set
from rlplay.scenario.loader import load
from rlplay.scenario.reproduction import Reproduction
from rlplay.scenario.share import Shared
from rlplay.ui.knobs.paste import PasteScreen, changes
from tests.ui.stage import on_screen, pressed, settled


def test_a_code_of_the_same_scenario_restores_all_its_settings():
    scenario = load("learn-to-think")
    held = resolve(scenario.settings | {"temperature": 0.5})
    shared = Shared("learn-to-think", settings={"epsilon": 0.1})
    assert changes(shared, held, scenario) == {"epsilon": 0.1, "temperature": 1.0}


def test_a_code_of_another_scenario_sets_what_it_names():
    held = resolve({"temperature": 0.5})
    assert changes(Shared("flattery", settings={"epsilon": 0.1}), held, load("learn-to-think")) == {"epsilon": 0.1}
    changed = changes(Shared("flattery", algorithm="dr-grpo"), held, load("learn-to-think"))
    assert changed["algorithm"] == "dr-grpo"
    assert changed["aggregation"] == "constant"


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_it_is_announced_before_it_is_done(size):
    code = Reproduction(load("flattery")).code(resolve(load("flattery").settings | {"epsilon": 0.125}))[0]
    async with on_screen(size=size) as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("paste")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, PasteScreen)
        screen.query_one(Input).value = code[:-2]
        await pilot.press("enter")
        assert "damaged" in str(screen.query_one(Static).render())
        assert not source.commands
        screen.query_one(Input).value = f" {code} "
        await settled(pilot)
        assert "0.2 → 0.125" in str(screen.query_one(Static).render())
        assert "seed 0" in str(screen.query_one(Static).render())
        await pressed(pilot, "enter")
        assert source.commands == [Set({"epsilon": 0.125})]
        assert not isinstance(app.screen, PasteScreen)


async def test_settings_that_fit_together_only_in_the_end_are_set_at_once():
    async with on_screen() as (app, source, pilot):
        await settled(pilot)
        await app.play.perform("paste")
        await settled(pilot)
        app.screen.query_one(Input).value = Shared("flattery", settings={"returns": "gae", "baseline": "value"}).code
        await pressed(pilot, "enter")
        assert source.commands == [Set({"returns": "gae", "baseline": "value"})]
