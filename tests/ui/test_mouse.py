"""The mouse: what rests on a title is explained, what is clicked acts, what is dragged moves."""

import pytest
from textual import events
from textual.geometry import Region

from rlplay.link.messages import Advance
from rlplay.trace.lenses import LENSES
from rlplay.ui.answers.sort_screen import SortScreen
from rlplay.ui.help.help_screen import HelpScreen
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.tokens.lens_screen import ColoursScreen
from tests.ui.stage import on_screen, pressed, settled

SIZE = (160, 45)


async def begun(pilot, source):
    source.update(1)
    source.update(2)
    await settled(pilot)


def tip(widget) -> str:
    return str(widget.tooltip or "")


async def test_a_title_says_what_its_panel_shows_and_the_text_below_it_is_left_alone():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        panels = {
            app.panels.rollouts: "Every answer",
            app.panels.inspector: "Everything about the selected token",
            app.panels.tokens: LENSES["prob_delta"].reading,
            app.panels.curves.panels[0]: "Click for the next view.",
        }
        for panel, words in panels.items():
            await pilot.hover(panel, offset=(5, 0))
            await settled(pilot)
            assert words in tip(panel)
            await pilot.hover(panel, offset=(5, 3))
            await settled(pilot)
            assert tip(panel) == ""


async def test_the_scale_under_the_tokens_says_what_the_colour_means():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        await app.play.perform("lens", "entropy")
        await settled(pilot)
        await pilot.hover(app.panels.tokens, offset=(5, app.panels.tokens.outer_size.height - 1))
        await settled(pilot)
        assert LENSES["entropy"].reading in tip(app.panels.tokens)


async def test_keys_stages_and_the_header_are_explained():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        await pilot.hover(app.panels.keys, offset=(app.panels.keys.render().plain.index("u update"), 0))
        await settled(pilot)
        assert tip(app.panels.keys).startswith("Finish the update.")
        await pilot.hover(app.panels.phases, offset=(app.panels.phases.render().plain.index("③ CREDIT") + 2, 0))
        await settled(pilot)
        assert tip(app.panels.phases).startswith("Each token gets its advantage.")
        await pilot.hover(app.panels.header, offset=(2, 0))
        await settled(pilot)
        assert "settings" in tip(app.panels.header)
        await pilot.hover(app.panels.header, offset=(app.panels.header.render().plain.index("paused"), 0))
        await settled(pilot)
        assert "to run or to pause" in tip(app.panels.header)


@pytest.mark.parametrize(
    ("panel", "row", "screen"),
    [
        ("rollouts", 0, SortScreen),
        ("tokens", 0, ColoursScreen),
        ("tokens", -1, ColoursScreen),
        ("inspector", 0, HelpScreen),
    ],
)
async def test_a_click_on_a_title_opens_what_belongs_to_it(panel, row, screen):
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        widget = getattr(app.panels, panel)
        await pilot.click(widget, offset=(5, row % widget.outer_size.height))
        await settled(pilot)
        assert isinstance(app.screen, screen)


async def test_a_click_on_the_title_of_a_curve_shows_the_next_view():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        panel = app.panels.curves.panels[0]
        before = panel.view
        await pilot.click(panel, offset=(5, 0))
        await settled(pilot)
        assert panel.view != before
        assert panel.cursor is None


@pytest.mark.parametrize(("stage", "phases"), [("① SAMPLE", 1), ("③ CREDIT", 3), ("↻", 5)])
async def test_a_click_on_a_stage_goes_on_until_it_is_done(stage, phases):
    async with on_screen(size=SIZE) as (app, source, pilot):
        await settled(pilot)
        await pilot.click(app.panels.phases, offset=(app.panels.phases.render().plain.index(stage), 0))
        await settled(pilot)
        assert source.commands[-1:] == [Advance("phase", phases)]


async def test_a_stage_behind_the_present_one_is_that_of_the_next_update():
    async with on_screen(size=SIZE) as (app, source, pilot):
        source.status(0, phase="credit")
        await settled(pilot)
        await pilot.click(app.panels.phases, offset=(app.panels.phases.render().plain.index("② SCORE"), 0))
        await settled(pilot)
        assert source.commands[-1:] == [Advance("phase", 5)]


async def test_clicks_on_the_header_open_the_settings_run_and_return():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        await pilot.click(app.panels.header, offset=(3, 0))
        await settled(pilot)
        assert isinstance(app.screen, KnobsScreen)
        await pressed(pilot, "escape")
        await pilot.click(app.panels.header, offset=(app.panels.header.render().plain.index("paused"), 0))
        await settled(pilot)
        assert source.commands[-1] == Advance("forever")
        source.status(2)
        await settled(pilot)
        await pressed(pilot, "left_square_bracket")
        assert app.play.session.looking == 1
        await pilot.click(app.panels.header, offset=(app.panels.header.render().plain.index("back to live"), 0))
        await settled(pilot)
        assert app.play.session.looking is None


async def drag(pilot, start, end):
    await pilot.mouse_down(offset=start)
    await pilot.hover(offset=end)
    await settled(pilot)  # the border has come to the mouse
    await pilot.mouse_up(offset=end)
    await settled(pilot)


async def test_the_border_before_the_token_is_dragged():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        x, y, width = (
            app.panels.inspector.region.x,
            app.panels.inspector.region.y + 4,
            app.panels.inspector.region.width,
        )
        cursor = app.panels.tokens.cursor
        await drag(pilot, (x, y), (x - 20, y))
        assert app.panels.inspector.region.width == width + 20
        assert app.panels.tokens.cursor == cursor, "that was no click"
        await drag(pilot, (app.panels.inspector.region.x - 1, y), (0, y))
        assert app.panels.tokens.region.width + app.panels.rollouts.region.width >= 24, "neither side disappears"
        await drag(pilot, (app.panels.inspector.region.x, y), (159, y))
        assert app.panels.inspector.region.width == 24
        await pilot.resize_terminal(150, 45)
        await settled(pilot)
        assert app.panels.inspector.region.width == width


@pytest.mark.parametrize("size", [SIZE, (80, 24)])
async def test_the_column_between_numbers_and_text_is_dragged(size):
    async with on_screen(size=size) as (app, source, pilot):
        await begun(pilot, source)
        width, y = app.panels.rollouts.region.width, app.panels.rollouts.region.y + 3
        whole = width + app.panels.tokens.region.width
        await drag(pilot, (width - 1, y), (width + 5, y))
        assert app.panels.rollouts.region.width == width + 6
        assert app.panels.tokens.region.width == whole - width - 6
        assert app.panels.tokens.region.x == app.panels.rollouts.region.right
        await drag(pilot, (width + 5, y), (0, y))
        assert app.panels.rollouts.region.width == 16
        await drag(pilot, (15, y), (size[0] - 1, y))
        assert app.panels.tokens.region.width >= 24, "the text stays"
        await pilot.resize_terminal(size[0] + 1, size[1])
        await settled(pilot)
        assert app.panels.rollouts.region.width == width


async def test_the_frame_of_the_first_screen_has_no_gap():
    async with on_screen(size=SIZE) as (app, _, pilot):
        await settled(pilot)
        lines = [
            "".join(segment.text for part in (app.panels.rollouts, app.panels.tokens) for segment in part.render_lines(
                Region(0, row % part.outer_size.height, part.outer_size.width, 1))[0])
            for row in (0, -1)
        ]  # fmt: skip
        assert lines[1].replace(" reward · advantage ", "─").strip("╰╯─") == "", "nothing but the frame and its words"
        assert "  " not in lines[0]


async def test_the_border_above_the_curves_is_dragged():
    async with on_screen(size=SIZE) as (app, source, pilot):
        await begun(pilot, source)
        edge, height = app.panels.tokens.region.bottom - 1, app.panels.curves.region.height
        await drag(pilot, (40, edge), (40, edge - 8))
        here = (
            app.panels.tokens.outer_size.height - 1
        )  # a terminal's press and release make a click; the pilot's do not
        app.panels.tokens.post_message(events.Click(app.panels.tokens, 10, here, 0, 0, 1, False, False, False))
        await settled(pilot)
        assert app.screen is app.panels.main, "the title under the mouse was not clicked"
        assert app.panels.curves.region.height == height + 8
        await drag(pilot, (40, app.panels.tokens.region.bottom - 1), (40, 44))
        assert app.panels.curves.region.height == 5


async def test_the_wheel_moves_answers_and_tokens_together():
    async with on_screen(1, prompts=8, generations=8, size=(120, 24)) as (app, _, pilot):
        app.panels.tokens.scroll_relative(y=3, animate=False, immediate=True)
        await settled(pilot)
        assert app.panels.rollouts.scroll_y == app.panels.tokens.scroll_y > 0


async def test_the_same_message_is_shown_once():
    async with on_screen(size=SIZE) as (app, _, pilot):
        for message in ("The lesson is over.", "The lesson is over.", "Another."):
            app.notify(message)
            await settled(pilot)
        assert [each.message for each in app._notifications] == ["The lesson is over.", "Another."]
