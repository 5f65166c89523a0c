"""The list of statistics to colour the tokens by: what each means, whether it is there, and how to get to it."""

import pytest
from textual.widgets import OptionList, Static

from rlplay.trace.lenses import LENSES
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.tokens.lens_screen import AUTO, ColoursScreen
from tests.apart import records_apart
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled, shown


async def opened(pilot, source, *keys, apart=False):
    source.records(records_apart(1) if apart else synthetic_update(1))
    source.status(1)
    await settled(pilot)
    await pressed(pilot, *keys)
    assert isinstance(pilot.app.screen, ColoursScreen)
    return pilot.app.screen.query_one(OptionList)


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("size", [(160, 45), (80, 24)])
async def test_each_statistic_is_listed_with_what_it_means(size, apart):
    async with on_screen(size=size) as (app, source, pilot):
        listed = await opened(pilot, source, "C", apart=apart)
        there = {name: lens for name, lens in LENSES.items() if apart or not lens.special}
        assert {option.id for option in listed.options} == {AUTO, *there}
        for name, lens in there.items():
            listed.highlighted = listed.get_option_index(name)
            await settled(pilot)
            words = " ".join(shown(app.screen.query_one(Static)).split())
            assert " ".join(lens.of(app.play.session.settings).reading.split()) in words
            assert lens.of(app.play.session.settings).symbol in words
        text = app.screen.query_one(Static)
        assert app.screen.region.contains_region(text.region)


async def test_one_choice_colours_the_tokens_and_the_list_begins_there_next_time():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        listed = await opened(pilot, source, "C")
        assert listed.highlighted_option.id == AUTO
        listed.highlighted = listed.get_option_index("entropy")
        await pressed(pilot, "enter")
        assert app.screen is app.panels.main
        assert app.play.lens.name == "entropy"
        await pressed(pilot, "C")
        listed = app.screen.query_one(OptionList)
        assert listed.highlighted_option.id == "entropy"
        await pressed(pilot, "home", "enter")
        assert app.play.lens_choice is None


async def test_what_has_no_values_yet_says_when_it_will():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.records(synthetic_update(1)[:1])
        await settled(pilot)
        await pressed(pilot, "C")
        listed = app.screen.query_one(OptionList)
        assert "shown once credit is given" in str(listed.get_option("advantages").prompt)
        assert "appears" not in str(listed.get_option("probability").prompt)


@pytest.mark.parametrize("row", [0, -1])
async def test_a_click_on_the_title_or_on_the_scale_opens_it(row):
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        cursor = app.panels.tokens.cursor
        await pilot.click(app.panels.tokens, offset=(4, row % app.panels.tokens.outer_size.height))
        await settled(pilot)
        assert isinstance(app.screen, ColoursScreen)
        assert app.panels.tokens.cursor == cursor


async def test_before_the_first_update_nothing_is_said_to_be_missing_from_it():
    async with on_screen(size=(120, 35)) as (app, _, pilot):
        await settled(pilot)
        await pressed(pilot, "C")
        assert not any("update" in str(each.prompt) for each in app.screen.query_one(OptionList).options)


async def test_the_colour_key_still_goes_on():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        before = app.play.lens.name
        await pressed(pilot, "c")
        assert app.play.lens.name != before


def test_the_comparison_opens_the_same_list():
    (binding,) = [each for each in CompareScreen.BINDINGS if each.key == "C"]
    assert binding.action == "perform('colours')"
