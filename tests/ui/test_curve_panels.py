"""The curve panels together: one cursor, which metric takes a place, and how many fit."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from textual.geometry import Region

from rlplay.trace.records import Evaluated
from rlplay.ui.curves.curve_panels import CurvePanels
from rlplay.ui.parts.panel_messages import UpdatePicked
from rlplay.ui.plot.curve_view import single
from rlplay.ui.plot.guess import WORDS, Guess
from rlplay.ui.pull.pull_map import PullMap
from tests.recorded import synthetic_evaluated
from tests.ui.curve_panels import CHOSEN, Host, recorded, subtitle, title
from tests.ui.stage import on_screen, pressed, settled


async def test_the_cursor_moves_in_all_panels_and_shows_the_values_there():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        reward, kl, _, length = app.panels
        reward.focus()
        await pilot.press("left", "left", "left")
        assert title(reward).startswith(f"Reward ━ {history.series('reward')[1][5]:.3g} at 6"), (
            "with as many digits as without a cursor"
        )
        assert title(kl).endswith("at 6")
        assert title(length).endswith("at 6")
        assert subtitle(reward) == "○ held out –", "nothing was held out at update 6"
        assert reward.render().plain.endswith("epsilon 0.2 → 0.1")
        await pilot.press("left")
        assert subtitle(reward) == "○ held out 0.432"
        assert not reward.render().plain.endswith("0.1")


async def test_the_update_looked_at_has_a_mark_of_its_own_below_it():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        app.query_one(CurvePanels).mark_update(4)
        await pilot.pause()
        picture = app.panels[0]._drawn[1]
        axis = app.panels[0].render().plain.split("\n")[-1]
        assert axis.index("◉") == picture.frame.column(4)
        assert axis.index("◆") == picture.frame.column(6), "the change made there keeps its mark"
        app.panels[0].focus()
        await pilot.press("left")
        assert axis in app.panels[0].render().plain, "the cursor is elsewhere"


async def test_the_cursor_stops_at_the_first_and_leaves_after_the_last():
    history, live = recorded(3)
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        app.panels[0].focus()
        await pilot.press("left", "left", "left", "left", "left")
        assert app.panels[0].cursor == 1
        await pilot.press("right", "right", "right")
        assert app.panels[0].cursor is None
        await pilot.press("left", "escape")
        assert app.panels[3].cursor is None


async def test_a_click_puts_the_cursor_there_and_a_second_one_looks_at_that_update():
    class Looked(Host):
        looked: ClassVar[list[int]] = []

        def on_update_picked(self, event: UpdatePicked) -> None:
            self.looked.append(event.number)

    history, live = recorded(8)
    app = Looked(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        frame = app.panels[0]._drawn[1].frame
        await pilot.click(app.panels[0], offset=(2 + frame.column(4), 3))
        assert (app.panels[0].cursor, app.looked) == (4, [])
        await pilot.click(app.panels[0], offset=(2 + frame.column(4), 3), times=2)
        assert app.looked[-1:] == [4]


async def test_any_metric_takes_a_place_and_a_log_scale():
    history, live = recorded()
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        app.panels[3].focus()
        titles = set()
        for _ in range(len(history.names()) + 4 - 1):  # the reward is one of the first four
            await pilot.press("down")
            titles.add(title(app.panels[3]).split(" ━")[0])
        assert any(text.startswith("Gradient norm") for text in titles)
        assert any(text.startswith("Reward part correct, mean") for text in titles)
        assert title(app.panels[3]).startswith("Length"), "all the way round"
        await pilot.press("L")
        assert title(app.panels[3]).endswith("· log")


@pytest.mark.parametrize(("width", "count"), [(160, 4), (150, 4), (120, 3), (100, 2), (80, 1)])
async def test_as_many_panels_as_fit(width, count):
    app = Host(*recorded(3))
    async with app.run_test(size=(width, 12)) as pilot:
        await pilot.pause()
        assert sum(bool(panel.display) for panel in app.panels) == count


@pytest.mark.parametrize(("width", "count"), [(160, 4), (120, 4), (80, 2)])
async def test_a_tall_place_has_two_rows(width, count):
    app = Host(*recorded(3))
    app.CSS = "CurvePanels { height: 1fr; }"
    async with app.run_test(size=(width, 20)) as pilot:
        await pilot.pause()
        shown = [panel for panel in app.panels if panel.display]
        assert len(shown) == count
        assert {panel.size.height > 7 for panel in shown} == {True}
        assert all(panel.region.right <= width and panel.region.bottom <= 20 for panel in shown)


async def test_a_narrow_screen_reaches_the_other_panels_by_cycling():
    app = Host(*recorded())
    async with app.run_test(size=(80, 12)) as pilot:
        (panel,) = app.query_one(CurvePanels).seen
        assert title(panel).startswith("KL"), "the header has the reward"
        panel.focus()
        await pilot.press("down")
        assert title(panel).startswith("Ratio, step")


@pytest.mark.parametrize("size", [(160, 12), (120, 9), (120, 20), (100, 20), (80, 20)])
async def test_an_update_has_the_same_place_in_all_panels(size):
    class Filled(Host):
        CSS = "CurvePanels { height: 1fr; }"

    history, live = recorded()
    history.add(synthetic_evaluated(0))
    app = Filled(history, live)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        ends = {column[0] for column in columns(app)}
        assert ends == ({(0, 8)} if size[1] >= 16 else {(0, 8), (1, 8)}), "alone, no column is empty"
        app.panels[0].focus()
        await pilot.press("L", "up", "L", "down", "S", "L")
        await pilot.pause()
        across = {column[1:] for column in columns(app)}
        assert len(across) == 1 or size[1] < 16, "one above the other, in the same column"


def columns(app):
    """What the panels in sight show over the updates of the run: which, and where the first and the last stand."""
    seen = [panel for panel in app.panels if not panel.has_class("-beyond") and panel.view.of_run]
    for panel in seen:
        panel.render()
    frames = [panel._drawn[1].frame for panel in seen]
    return {((frame.first, frame.last), frame.left, frame.width - frame.right) for frame in frames}


@pytest.mark.parametrize("width", [38, 60, 90, 114, 120, 150, 152, 160, 200])
async def test_no_word_in_a_border_is_cut(width):
    history, live = recorded(steps=32)
    app = Host(history, live)
    async with app.run_test(size=(width, 12)):
        for panel in app.panels:
            if not panel.has_class("-beyond"):
                strips = panel.render_lines(Region(0, 0, *panel.outer_size))
                lines = [strips[0].text, strips[-1].text]
                assert "…" not in "".join(lines)
                assert title(panel) in lines[0]
                assert subtitle(panel) in lines[1]
        ratio = app.panels[2]
        assert subtitle(ratio).startswith("↑"), "what is clipped comes first"
        assert width < 160 or subtitle(ratio).endswith("log n")


async def test_a_long_name_is_cut_and_its_value_stays():
    name = "rewards/my_very_own_reward_for_short_answers/mean"
    history, live = recorded(3)
    for at in (1, 2, 3):
        held = {name: 0.4321}
        history.add(Evaluated(update=at, metrics=held, prompts=[], completions=[], rewards=np.zeros(1), seconds=1.0))
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        await pilot.pause()
        panel = app.panels[0]
        panel.put(single(name))
        assert title(panel).endswith("… 0.432")
        assert title(panel) in panel.render_lines(Region(0, 0, *panel.outer_size))[0].text


async def test_a_picture_is_not_there_twice_once_there_is_room_again():
    async with on_screen(size=(100, 30)) as (app, source, pilot):
        source.update(1)
        await app.play.perform("stage", "curve")
        for key in ("P", "E", "P"):
            await pressed(pilot, key)
        await app.play.perform("stage", "all")
        await pilot.resize_terminal(160, 45)
        await settled(pilot)
        views = [panel.view for panel in app.panels.curves.seen]
        assert len(views) == 4
        assert len([view for view in views if isinstance(view, PullMap)]) == 1


async def test_the_curve_of_a_question_is_lit_and_has_room_for_the_answer():
    history, live = recorded(3)
    app = Host(history, live)
    async with app.run_test(size=(160, 12)) as pilot:
        curves = app.query_one(CurvePanels)
        curves.take(replace(curves.details, guess=Guess("kl", 3, 10, "rises")))
        curves.show(history, live, CHOSEN)
        await pilot.pause()
        assert [panel.has_class("-lit") for panel in app.panels] == [False, True, False, False]
        assert [WORDS in panel.render().plain for panel in app.panels] == [False, True, False, False]
        assert app.panels[1].render().plain.split("\n")[-1].split()[-1] == "10"
        curves.take(replace(curves.details, guess=None))
        curves.show(history, live, CHOSEN)
        await pilot.pause()
        assert not any(panel.has_class("-lit") for panel in app.panels)
        assert WORDS not in app.panels[1].render().plain
