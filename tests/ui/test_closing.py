"""The key that closes: every dialogue, unless a field has the focus; at last the program, which asks first."""

import pytest
from textual.widgets import Input

from rlplay.link.messages import Failed
from rlplay.ui.health.health_screen import HealthScreen
from rlplay.ui.knobs.knobs_screen import KnobsScreen
from rlplay.ui.log.leave import LeaveScreen
from rlplay.ui.parts.confirm import ConfirmScreen
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.verbs import VERBS
from tests.recorded import synthetic_update
from tests.ui.stage import on_screen, playground, pressed, settled, shown, until

OPENED = [
    "knobs", "branch", "timeline", "probe", "health", "held_out", "log", "help", "lessons", "sort",
]  # fmt: skip
TYPED = ["find", "glossary", "paste"]


async def begun(pilot, source):
    source.update(1)
    await settled(pilot)
    source.kept[1] = pilot.app.play.session.run.newest
    source.status(1)
    await settled(pilot)


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("verb", OPENED)
async def test_it_closes_a_dialogue(verb):
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        await begun(pilot, source)
        await app.play.perform(verb)
        await settled(pilot)
        assert app.screen is not app.panels.main
        await pressed(pilot, "q")
        assert app.screen is app.panels.main
        assert app.return_code is None


@pytest.mark.parametrize("verb", TYPED)
async def test_where_text_is_typed_the_frame_names_the_key_that_closes(verb):
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await begun(pilot, source)
        await app.play.perform(verb)
        await settled(pilot)
        await pressed(pilot, "q")
        assert app.screen.query_one(Input).value == "q"
        frame = app.screen.query_one("Vertical")._border_subtitle.plain
        assert "esc close" in frame or "esc cancel" in frame
        await pressed(pilot, "escape")
        assert app.screen is app.panels.main


async def test_while_a_setting_is_searched_it_is_a_letter():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        await begun(pilot, source)
        await pressed(pilot, "k", "slash", "q")
        assert isinstance(app.screen, KnobsScreen)
        assert app.screen.query_one("#search", Input).value == "q"


async def test_a_live_run_ends_after_a_question_in_one_line():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await begun(pilot, source)
        source.records(synthetic_update(2)[:1])
        await settled(pilot)
        await pressed(pilot, "q")
        assert isinstance(app.screen, LeaveScreen)
        assert app.screen.query_one("Vertical").region.height < 8, "the run stays in sight"
        words = shown(app.screen.query_one("Static"))
        assert words == (
            "Leave? The run is on disk: rlplay resume nowhere.rlplay goes on after update 1."
            " Update 2 then begins again."
        )
        await pressed(pilot, "escape")
        assert app.screen is app.panels.main
        assert app.return_code is None
        await pilot.press("q", "q")
    assert app.return_code == 0


async def test_the_question_follows_the_run_without_reading_the_run_file(monkeypatch):
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await begun(pilot, source)
        monkeypatch.delattr(type(source), "snapshots")
        await pressed(pilot, "q")
        assert shown(app.screen.query_one("Static")).endswith("goes on after update 1.")
        source.update(2)
        await until(pilot, lambda: "after update 1. Update 2 then" in shown(app.screen.query_one("Static")))
        source.kept[2] = app.play.session.run.newest
        source.status(2)
        await until(pilot, lambda: shown(app.screen.query_one("Static")).endswith("goes on after update 2."))
        source.put(Failed("out of memory"), None)
        await settled(pilot)
        app.screen.follow()
        assert shown(app.screen.query_one("Static")).endswith("goes on after update 2.")


async def test_enter_agrees_too():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await begun(pilot, source)
        await pilot.press("q", "enter")
    assert app.return_code == 0


async def test_what_cannot_be_resumed_is_not_said_to_be():
    async with on_screen(1, size=(80, 24)) as (app, _, pilot):
        await pressed(pilot, "q")
        assert shown(app.screen.query_one("Static")) == "Leave? The run ends, and nothing of it can be resumed yet."


async def test_it_leaves_at_once_where_nothing_would_be_lost():
    for ends in (False, True):
        app, source = playground()
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            if ends:
                source.update(1)
                source.put(Failed("out of memory"), None)
                await settled(pilot)
            await pilot.press("q")
        assert app.return_code == 0


async def test_from_anywhere_ctrl_q_leaves_at_once():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await begun(pilot, source)
        await pilot.press("ctrl+q")
    assert app.return_code == 0


async def test_a_question_is_answered_by_enter_and_closed_by_the_same_key_as_all():
    async with on_screen(size=(80, 24)) as (app, _, pilot):
        for key, said in (("enter", True), ("escape", False), ("q", False)):
            answers = []
            app.push_screen(ConfirmScreen("Reset", "Forget it?", "reset"), answers.append)
            await settled(pilot)
            await pressed(pilot, key)
            assert answers == [said]
    assert VERBS["quit"].keys == ("q",)


async def test_a_closed_timeline_hears_of_no_theme_and_is_let_go():
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        before = len(app.theme_changed_signal._subscriptions)
        for _ in range(2):
            await pressed(pilot, "g")
            await pressed(pilot, "escape")
        assert len(app.theme_changed_signal._subscriptions) == before


async def test_no_dialogue_is_brought_up_to_date_while_the_app_shuts_down(monkeypatch):
    looks = []
    async with on_screen(1, size=(120, 35)) as (app, _, pilot):
        await pressed(pilot, "h")
        monkeypatch.setattr(HealthScreen, "look", lambda self, at_once=False: looks.append(at_once))
        app.refresher.everything()
        assert looks == [True]
        assert isinstance(app.screen, HealthScreen)

        def unmounted(_):
            assert any(isinstance(screen, HealthScreen) for screen in app.screen_stack)
            looks.append("shutting down")
            app.refresher._dialogues(at_once=True)

        monkeypatch.setattr(SteadyStatic, "on_unmount", unmounted, raising=False)
        looks.clear()
    assert set(looks) == {"shutting down"}
