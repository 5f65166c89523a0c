"""The list of all algorithms, which the knobs open."""

from textual.widgets import OptionList, Static

from rlplay.algorithms.catalogue import FAMILIES, PRESETS
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from tests.ui.test_knobs import Host, go_to


async def test_an_algorithm_that_is_refused_names_those_nearest():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        go_to(app.screen, "algorithm")
        await pilot.press("enter", *"grop", "enter")
        text = str(app.screen.query_one(Static).render())
        assert "'grop'" in text
        assert "grpo, " in text


async def test_all_algorithms_are_listed_by_family_and_found_by_what_they_do():
    app = Host()
    async with app.run_test(size=(120, 35)) as pilot:
        await pilot.press("enter")
        screen = app.screen
        listed = [option.id for option in screen.query_one(OptionList).options]
        assert {name for name in listed if name} == set(PRESETS)
        assert listed.count(None) == len(FAMILIES)
        assert screen.chosen is PRESETS["grpo"]
        await pilot.press(*"teacher distribution")
        await pilot.pause()
        assert screen.chosen is PRESETS["gkd"]
        assert PRESETS["gkd"].changes in str(screen.query_one(Static).render())
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen.draft.value("algorithm") == "gkd"
        await pilot.press("a")
        assert app.outcome == {"algorithm": "gkd"}


async def test_closing_the_list_of_algorithms_changes_nothing():
    app = Host()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "down", "escape")
        assert isinstance(app.screen, KnobsScreen)
        assert not app.screen.draft.differing()
