"""The health screen: each problem of a run with its numbers and a remedy, or that there is none."""

import asyncio

import msgspec
import numpy as np
import pytest
from textual.containers import VerticalScroll
from textual.widgets import OptionList

from rlplay.health.digest import TokenPlace
from rlplay.health.finding import Finding
from rlplay.health.health_of_run import examine_run
from rlplay.trace.records import Sampled, Scored
from rlplay.trace.runfile import RunWriter
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.health import health_screen as health
from rlplay.ui.health.health_screen import HealthScreen
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.plot.plot_data import NO_UPDATE
from rlplay.ui.session import digesting, read_ahead
from rlplay.ui.session.examination import examine
from rlplay.ui.session.sources import ReplaySource
from rlplay.ui.words.diagnoses import warning
from rlplay.ui.words.narration import DETAILS
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.rehearsed import cut
from tests.ui.stage import on_screen, pressed, settled, until


def health_text(app) -> str:
    assert isinstance(app.screen, HealthScreen)
    options = app.screen.query_one(OptionList)
    parts = [str(text.render()) for text in app.screen.query(SteadyStatic)]
    found = [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]
    return "\n".join([parts[0], *found, *parts[1:]])


async def test_it_opens_by_its_key_on_the_last_finished_update_and_leads_to_the_knobs():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        await settled(pilot)
        await pressed(pilot, "h")
        assert "press u for the first update" in health_text(app)
        source.records([*cut(1), *synthetic_update(2)[:1]])
        await settled(pilot)
        app.screen.follow()
        assert "1 problem found." in health_text(app)
        assert "9 of 16 answers were cut" in health_text(app)
        assert "Change: Raise max_completion_length." in health_text(app)
        assert "Critic  not used" in health_text(app)
        await pressed(pilot, "k")
        assert app.tuning.knobs is not None


async def test_enter_goes_to_the_token_that_shows_the_problem():
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        for number in (1, 2):
            for record in cut(number):
                source.kept.setdefault(number, Update(number)).add(record)
        source.records([*cut(1), *cut(2)])
        source.status(2)
        await settled(pilot)
        app.play.session.look_at(1)
        await settled(pilot)
        place = examine(app.play.session)[1][0].place
        app.play.session.back_to_live()
        await settled(pilot)
        assert examine(app.play.session)[1][0].place.update == 2
        app.play.session.look_at(1)
        await pressed(pilot, "h")
        await pressed(pilot, "enter")
        assert app.screen is app.panels.main
        assert app.play.session.shown.number == place.update == 1
        assert app.panels.tokens.cursor == (place.answer, place.token)


async def test_a_finding_about_an_older_update_opens_that_update(monkeypatch):
    async with on_screen(size=(160, 45)) as (app, source, pilot):
        for number in (1, 2):
            source.kept[number] = Update(number)
            for record in synthetic_update(number):
                source.kept[number].add(record)
            source.update(number)
        await settled(pilot)
        finding = Finding("x", "Title", "E.", "C.", "D.", place=TokenPlace(1, 3, 2))
        monkeypatch.setattr(health, "examine", lambda session: (examine(session)[0], [finding]))
        await pressed(pilot, "h")
        await pressed(pilot, "enter")
        assert app.play.session.shown.number == 1
        assert app.panels.tokens.cursor == (3, 2)


async def test_a_healthy_run_is_reported_as_healthy():
    async with on_screen(size=(120, 35)) as (app, source, pilot):
        source.update(1)
        source.update(2)
        await settled(pilot)
        await pressed(pilot, "h")
        first, second = app.play.session.run.history.series("reward")[1]
        reward = f"Reward from {first:.3g} at update 1 to {second:.3g} at 2."
        begin, _, end = health_text(app).partition("\n")[0].partition(" cannot tell. ")
        assert begin.startswith("No problem found. ")
        assert end == reward
        assert not app.screen.query_one(OptionList).display
        await pressed(pilot, "h")
        assert app.screen is app.panels.main


def paid_by_length(path):
    """A run whose reward follows length; only many updates together have pairs enough to say so."""
    writer = RunWriter.create(path, synthetic_started())
    for number in range(1, 13):
        for record in synthetic_update(number, seed=number):
            changes = {}
            if isinstance(record, Sampled):
                lengths = np.diff(record.offsets).astype(np.float64)
                changes = {"columns": [{}] * len(record.prompts)}
            elif isinstance(record, Scored):
                changes = {"rewards": lengths}
            writer.append(msgspec.structs.replace(record, **changes))
    writer.close()
    return path


@pytest.mark.parametrize("large", [False, True])
async def test_a_replay_opens_with_the_finding_of_the_whole_run(tmp_path, monkeypatch, large):
    path = paid_by_length(tmp_path / "run.rlplay")
    expected = examine_run(path)[1]
    assert expected[0].name == "length"
    if large:
        monkeypatch.setattr(digesting, "AT_ONCE", 10)
        monkeypatch.setattr(read_ahead, "AT_ONCE", 10)
    app = RlplayApp(ReplaySource(path))
    said = []
    plain = app.panels.narrator.narrate

    def narrate(narration, *rest):
        said.append(narration.warning)
        plain(narration, *rest)

    monkeypatch.setattr(app.panels.narrator, "narrate", narrate)
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: any(said))
        await settled(pilot)
        assert [finding.name for finding in examine(app.play.session)[1]] == [finding.name for finding in expected]
        await pressed(pilot, "h")
        assert expected[0].title in health_text(app)
    assert {text for text in said if text} == {warning(expected[0]) + DETAILS}, "nothing else meanwhile"


async def test_the_updates_that_are_still_to_be_read_are_counted(tmp_path, monkeypatch):
    source = ReplaySource(paid_by_length(tmp_path / "run.rlplay"))
    go_on, plain = asyncio.Semaphore(0), source.load_in_thread

    async def later(number):
        await go_on.acquire()
        return await plain(number)

    monkeypatch.setattr(source, "load_in_thread", later)
    app = RlplayApp(source)
    async with app.run_test(size=(120, 35)) as pilot:
        await until(pilot, lambda: app.play.session.shown is not None)
        await pilot.press("h")
        await until(pilot, lambda: isinstance(app.screen, HealthScreen))
        for left in range(11, 1, -1):
            await until(pilot, lambda left=left: app.play.session.digesting.left(12) == left)
            await settled(pilot)
            assert health_text(app).startswith(f"Reading the run: {left} updates are left.")
            go_on.release()
        go_on.release()
        await until(pilot, lambda: app.play.session.health.knows(1))
        await settled(pilot)
        assert "The reward pays for longer answers" in health_text(app)


async def test_a_recording_without_an_update_names_no_key_for_one(tmp_path):
    RunWriter.create(tmp_path / "empty.rlplay", synthetic_started()).close()
    app = RlplayApp(ReplaySource(tmp_path / "empty.rlplay"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.play.session.place == "end")
        await pressed(pilot, "h")
        assert health_text(app).strip() == NO_UPDATE


async def test_pages_lead_from_the_problems_to_what_is_below_them():
    async with on_screen(size=(80, 24)) as (app, source, pilot):
        source.records(cut(1))
        await settled(pilot)
        await pressed(pilot, "h")
        panel = app.screen.query_one(VerticalScroll)
        await until(pilot, lambda: panel.max_scroll_y > 0)
        assert panel.scroll_y == 0, "the summary is in sight"
        await pressed(pilot, "pagedown")
        await until(pilot, lambda: panel.scroll_y > 0)
        await pressed(pilot, "pageup")
        await until(pilot, lambda: panel.scroll_y == 0)
