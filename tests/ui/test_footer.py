"""The footer: it follows the focus, fills the width, and each key in it can be clicked."""

import pytest
from textual.binding import Binding

from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.status.footer import FIRST_TO_GO
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS
from tests.ui.stage import on_screen, playground, pressed, settled

PANELS = [TokenMap, AnswerList, Inspector, CurvePanel]
NEEDED = ("space run/pause", "? help", "q quit")


def line(app) -> str:
    return app.panels.keys.render().plain


@pytest.mark.parametrize("size", [(80, 24), (120, 35), (160, 45), (240, 67)])
async def test_it_shows_the_keys_of_the_panel_with_the_focus(size):
    app, source = playground(script=[{"say": "Look."}])
    async with app.run_test(size=size) as pilot:
        source.update(1)
        await settled(pilot)
        app.panels.curves.panels[0].focus()
        await settled(pilot)
        for key in ("← → cursor", "↑ ↓ metric", "enter look", *NEEDED):
            assert key in line(app)
        app.panels.rollouts.focus()
        await settled(pilot)
        for key in ("↑ ↓ answer", "o sort", "enter unfold", *NEEDED):
            assert key in line(app)
        assert "metric" not in line(app)
        app.panels.tokens.focus()
        await settled(pilot)
        for key in ("u update", "t lesson", *NEEDED):
            assert key in line(app), "one step of the run or of its lesson comes before the keys of the tokens"
        assert len(line(app)) <= size[0]


async def test_enter_has_the_name_of_what_it_does_in_the_view():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        for key, name in (("P", "enter next region"), ("E", "enter answers"), ("B", "enter look")):
            await pressed(pilot, key)
            assert isinstance(app.focused, CurvePanel)
            assert name in line(app)


async def test_a_picture_without_a_cursor_offers_no_keys_of_the_cursor():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        await pressed(pilot, "T")
        assert isinstance(app.focused, CurvePanel)
        assert "↑ ↓ metric" in line(app)
        assert "cursor" not in line(app)
        assert "look" not in line(app)


async def test_on_a_curve_a_wide_screen_has_all_its_keys():
    async with on_screen(size=(160, 45)) as (app, _, pilot):
        app.panels.curves.panels[0].focus()
        await settled(pilot)
        assert "L log" in line(app)
        assert "S smooth" in line(app)


async def test_at_240_columns_every_verb_with_a_title_there_fits_and_the_line_is_full():
    app, _ = playground(script=[{"say": "Look."}])
    async with app.run_test(size=(240, 67)) as pilot:
        await settled(pilot)
        for key in ("i probe", "b compare", "x largest", "h health", "d glossary", "l lessons"):
            assert key in line(app)
        assert "← → ↑ ↓ token" in line(app)
        assert "ctrl+p all" in line(app)
        assert len(line(app)) > 200


async def test_at_no_width_anything_is_cut():
    app, _ = playground(script=[{"say": "Look."}])
    async with app.run_test(size=(40, 30)) as pilot:
        for width in range(40, 260, 7):
            await pilot.resize_terminal(width, 30)
            for panel in (app.panels.tokens, app.panels.curves.panels[0]):
                panel.focus()
                await settled(pilot)
                assert app.size.width == width
                assert len(line(app)) <= width
                assert all(each in line(app) for each in NEEDED), width


@pytest.mark.parametrize("panel", PANELS)
def test_each_key_there_is_bound_where_it_is_said_to_be(panel):
    own = {key for each in panel.BINDINGS if isinstance(each, Binding) for key in each.key.split(",")}
    own |= {"up", "down"} if panel is Inspector else set()  # which scroll
    verbs = {key for verb in VERBS.values() for key in verb.keys}
    for shortcut in panel.SHORTCUTS:
        assert set(shortcut.keys) <= own | verbs


def test_every_verb_in_it_has_its_turn_to_go():
    shown = {verb.name for verb in VERBS.values() if verb.footer}
    assert shown - set(FIRST_TO_GO) == {"run", "help", "quit"}


async def test_a_click_on_one_of_several_keys_presses_that_one():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        source.update(1)
        source.update(2)
        source.update(3)
        await settled(pilot)
        panel = app.panels.curves.panels[0]
        panel.focus()
        await settled(pilot)
        at = line(app).index("← → cursor")
        await pilot.click(app.panels.keys, offset=(at, 0))
        await settled(pilot)
        assert panel.cursor == 3, "the cursor appears at the newest"
        await pilot.click(app.panels.keys, offset=(at, 0))
        await settled(pilot)
        assert panel.cursor == 2
        await pilot.click(app.panels.keys, offset=(at + 2, 0))
        await settled(pilot)
        assert panel.cursor == 3
