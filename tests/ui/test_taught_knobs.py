"""The panel of a lesson that names a few settings: only these are shown, until all are asked for."""

import msgspec
import pytest
from textual.app import App
from textual.widgets import Static

from rlplay.algorithms.knobs import KNOBS
from rlplay.scenario.loader import load
from rlplay.ui.knobs.knob_list import KnobList
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from tests.ui.test_knobs import CHOSEN, Host, go_to


class Taught(App):
    """The panel of a scenario that shows two settings."""

    def on_mount(self) -> None:
        scenario = msgspec.structs.replace(load("learn-to-think"), knobs=["beta", "temperature"])
        self.push_screen(KnobsScreen(CHOSEN, scenario))


def names(screen: KnobsScreen) -> list[str]:
    return [option.id for option in screen.query_one(KnobList).options if option.id is not None]


@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_a_scenario_may_show_a_few_settings_and_says_how_many_it_hides(size):
    app = Taught()
    async with app.run_test(size=size) as pilot:
        screen = app.screen
        assert names(screen) == ["temperature", "beta"], "in the order of the panel"
        hidden = len([name for name in KNOBS if not screen.draft.foreign(name)]) - 2
        last = screen.query_one(KnobList).options[-1]
        assert last.prompt.plain == f"{hidden} more settings are hidden · * show all"
        await pilot.press("down", "asterisk")
        assert len(names(screen)) == hidden + 2
        assert screen.name_under_cursor == "beta"
        assert "hidden" not in screen.query_one(KnobList).options[-1].prompt.plain
        go_to(screen, "epsilon")
        await pilot.press("right", "asterisk")
        assert names(screen) == ["temperature", "epsilon", "beta"], "what is changed stays in sight"


async def test_a_hidden_setting_is_found_only_once_all_are_shown():
    app = Taught()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("slash", *"generations")
        assert "it is hidden: esc, then * shows all" in str(app.screen.query_one(Static).render())
        await pilot.press("escape", "asterisk", "slash", *"generations")
        assert "num_generations" in names(app.screen)


async def test_without_a_choice_all_settings_are_shown_and_the_key_does_nothing():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        before = names(app.screen)
        await pilot.press("asterisk")
        assert names(app.screen) == before
        assert "hidden" not in app.screen.query_one(KnobList).options[-1].prompt.plain
