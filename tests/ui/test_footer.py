"""The footer: six keys at most, those of the panel with the focus among them, and each can be clicked."""

import pytest
from textual.binding import Binding

from rlplay.ui.answers.answer_list import AnswerList
from rlplay.ui.curves.curve_panel import CurvePanel
from rlplay.ui.status.footer import MOST, ORDER, PRIORITY
from rlplay.ui.tokens.token_map import TokenMap
from rlplay.ui.tokens.token_panel import Inspector
from rlplay.verbs import VERBS
from tests.ui.stage import on_screen, playground, pressed, settled

PANELS = [TokenMap, AnswerList, Inspector, CurvePanel]
NEEDED = ("space run", "? all keys")


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
        expected = "space run   t lesson   u update   z undo   c colour   p view   ? all keys"
        assert line(app).split() == expected.split(), "what every screen needs stays where it is"
        assert len(line(app)) <= size[0]


async def test_there_are_never_more_than_six_keys_beside_that_of_the_help():
    for script in ([], [{"say": "Look."}]):
        app, source = playground(script=script)
        async with app.run_test(size=(240, 67)) as pilot:
            source.update(1)
            await settled(pilot)
            for panel in (app.panels.tokens, app.panels.rollouts, app.panels.inspector, app.panels.curves.panels[0]):
                panel.focus()
                await settled(pilot)
                entries = app.panels.keys.fitting(240)
                assert len(entries) == MOST + 1
                assert [entries[0].name, entries[-1].name] == ["run", "help"]


async def test_the_key_that_runs_is_named_after_what_it_would_do():
    async with on_screen(1, size=(160, 45)) as (app, source, pilot):
        assert "space run " in line(app)
        source.status(1, running=True)
        await settled(pilot)
        assert "space pause " in line(app)


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


def test_every_entry_has_its_importance_and_its_place():
    assert sorted(PRIORITY) == sorted(ORDER)
    assert {name for name in ORDER if name in VERBS} == {"run", "tour", "update", "undo", "lens", "knobs", "panel"}


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
