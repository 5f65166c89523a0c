"""The panels beside the token, which a large screen has room for."""

from dataclasses import replace

from rlplay.ui.held_out.learning_map import LearningMap
from rlplay.ui.plot.curve_view import single
from rlplay.ui.plot.tree import AnswerTree
from rlplay.ui.pull.pull_map import PullMap
from rlplay.ui.pull.ratio_histogram import Ratios
from tests.recorded import synthetic_evaluated
from tests.ui.stage import on_screen, pressed, settled, shown


def beside(app):
    return [panel.view for panel in app.panels.curves.seen if panel not in app.panels.curves.row]


async def test_a_large_screen_shows_the_answers_of_the_update_beside_the_token():
    async with on_screen(size=(240, 67)) as (app, source, pilot):
        source.records([synthetic_evaluated(0)])
        source.update(1)
        await settled(pilot)
        assert beside(app) == [AnswerTree(), LearningMap(), PullMap()]
        tree, learning, pull = app.panels.curves.seen[-3:]
        assert "(all answers)" in shown(tree)
        assert "bright: right" in str(learning.border_subtitle)
        assert "A > 0" in str(pull.border_subtitle)
        await pilot.resize_terminal(240, 45)
        await settled(pilot)
        assert beside(app) == [AnswerTree(), LearningMap()], "with room for two"
        await pilot.resize_terminal(160, 67)
        await settled(pilot)
        assert not beside(app)
        assert len(app.panels.curves.seen) == len(app.panels.curves.row)


async def test_the_cursor_of_the_updates_is_in_the_row_and_beside():
    async with on_screen(size=(240, 67)) as (app, source, pilot):
        for number in (1, 2, 3):
            source.records([synthetic_evaluated(number)])
            source.update(number)
        await settled(pilot)
        app.panels.curves.seen[-2].focus()
        await pressed(pilot, "left", "left")
        assert {panel.cursor for panel in app.panels.curves.panels} == {2}


async def test_a_panel_beside_keeps_what_the_user_chose_and_shows_what_had_no_room():
    async with on_screen(1, size=(240, 67)) as (app, _, pilot):
        app.panels.curves.seen[-1].focus()
        await app.play.perform("curve", "grad_norm")
        await settled(pilot)
        assert beside(app) == [AnswerTree(), LearningMap(), single("grad_norm")]
        await app.play.perform("tree")
        await settled(pilot)
        assert app.panels.curves.seen[4].has_focus, "the tree is on the screen already"
        app.panels.curves.take(
            replace(app.panels.curves.details, wanted=["reward", "completions/mean_length", "belief"])
        )
        app.panels.curves.prepare(
            app.play.session.run.history, app.play.session.shown, app.play.session.settings_of(app.play.session.shown)
        )
        assert Ratios() not in [panel.view for panel in app.panels.curves.row], "it comes fifth"
        assert beside(app)[-1] == single("grad_norm")
