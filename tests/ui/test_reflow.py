"""Three sizes of screen: what is in sight, and that nothing is cut off."""

import itertools

import pytest

from rlplay.ui.main.stages import fitting
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, pressed, settled, shown, text_of


def seen(app):
    return {
        w.id or type(w).__name__
        for w in (app.panels.rollouts, app.panels.tokens, app.panels.inspector, app.panels.curves)
        if w.region.area
    }


@pytest.mark.parametrize(
    ("size", "panels"),
    [
        ((160, 45), {"rollouts", "tokens", "inspector", "CurvePanels"}),
        ((120, 35), {"rollouts", "tokens", "inspector", "CurvePanels"}),
        ((80, 24), {"rollouts", "tokens", "CurvePanels"}),
    ],
)
async def test_what_is_in_sight(size, panels):
    async with on_screen(1, size=size) as (app, _, _):
        assert seen(app) == panels
        assert app.panels.tokens.size.height >= 6
        assert app.panels.tokens.size.width >= 40
        for bar in (app.panels.header, app.panels.phases, app.panels.keys):
            assert bar.region.height == 1
            assert len(str(bar.render())) <= size[0]
        assert "paused" in str(app.panels.header.render())
        assert "? all keys" in str(app.panels.keys.render())


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (80, 14)])
async def test_a_long_text_of_a_lesson_leaves_room_for_the_tokens_and_the_footer(size):
    async with on_screen(size=size) as (app, source, pilot):
        source.records(synthetic_update(1)[:1])
        await settled(pilot)
        app.panels.narrator.say("The paler a token, the less likely it was. " * 8)
        await settled(pilot)
        assert app.panels.tokens.size.height >= 3
        assert "next" in shown(app.panels.narrator), "the rest of the text by `t`"
        assert app.panels.keys.region.bottom == size[1]
        assert app.panels.keys.region.height == 1


async def test_the_panel_key_reaches_everything_on_a_small_screen():
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        assert "p " in str(app.panels.keys.render())
        found = set()
        for _ in fitting(app.play.session):
            await pressed(pilot, "p")
            found |= seen(app)
        assert found == {"rollouts", "tokens", "inspector", "CurvePanels"}
        assert seen(app) == {"rollouts", "tokens", "CurvePanels"}, "once round"


async def test_another_size_lays_everything_out_again():
    async with on_screen(1, size=(160, 45)) as (app, _, pilot):
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        widths = {len(line) for line in text_of(app.panels.rollouts).split("\n")}
        assert widths == {app.panels.rollouts.scrollable_content_region.width}


async def test_footer_clicks_carry_out_verbs():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        await settled(pilot)
        x = str(app.panels.keys.render()).index("u update")
        await pilot.click(app.panels.keys, offset=(x, 0))
        await settled(pilot)
        assert [command.until for command in source.commands] == ["update"]


def beside(app):
    """What stands on each line in sight: a group and its answer, in the list and in the token map."""
    height = app.panels.tokens.scrollable_content_region.height
    listed = [(group, max(completion, -1)) for group, completion in app.panels.rollouts._rows]
    mapped = [(row.group, row.completion) for row in app.panels.tokens.rows]
    starts = app.panels.rollouts.scroll_offset.y, app.panels.tokens.scroll_offset.y
    one, other = (rows[top : top + height] for rows, top in zip((listed, mapped), starts, strict=True))
    # Lines on which nothing begins have no answer in the list.
    return [(mine if mine[1] >= 0 else (mine[0], its[1]), its) for mine, its in zip(one, other, strict=True)]


@pytest.mark.parametrize("scroll", ["wheel", "cursor"])
async def test_rewards_stand_beside_their_answers_after_every_change_of_size(scroll):
    async with on_screen(1, prompts=12, generations=6, size=(160, 45)) as (app, _, pilot):
        if scroll == "wheel":
            app.panels.tokens.scroll_to(y=30, animate=False, immediate=True)
        else:
            await pilot.press(*["pagedown"] * 3)
        await settled(pilot)
        for size in ((80, 24), (100, 30), (120, 35), (160, 45), (120, 35), (80, 24), (160, 45)):
            await pilot.resize_terminal(*size)
            await settled(pilot)
            if size[0] >= 110:
                assert app.panels.rollouts.scroll_y == app.panels.tokens.scroll_y
                assert len(app.panels.rollouts._rows) == len(app.panels.tokens.rows)
                assert all(mine == its for mine, its in beside(app)), size
            else:
                app.panels.rollouts.scroll_to(y=app.panels.rollouts.max_scroll_y, animate=False, immediate=True)
                await settled(pilot)


async def test_the_right_end_of_the_header_goes_along_with_the_edge(monkeypatch):
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        narrow = str(app.panels.header.render())
        monkeypatch.setattr(app.refresher, "_parts", itertools.cycle([lambda: None]))  # nothing else has happened
        await pilot.resize_terminal(160, 45)
        await pilot.pause()
        wide = str(app.panels.header.render())
        assert len(narrow) <= 80
        assert len(wide.rstrip()) > 155
        assert "tokens" in wide
        assert "──▶" in str(app.panels.phases.render()), "and so do the phases"


@pytest.mark.parametrize(("kind", "below"), [("rewards", "reward · A · tok"), ("reward model", "label · score")])
async def test_the_unit_of_a_length_is_below_the_answers_where_it_fits(kind, below):
    async with on_screen(1, steps=4, size=(120, 35)) as (app, _, _):
        app.panels.rollouts.show(app.play.session.shown, [0], app.play.sort, app.panels.tokens.rows, kind=kind)
        assert app.panels.rollouts.border_subtitle.strip(" ─") == below
