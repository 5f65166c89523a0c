"""A repair on the screen: one key from a problem to an experiment, and one from there to a branch."""

from contextlib import asynccontextmanager

import pytest
from textual.widgets import OptionList

from rlplay.link.messages import Advance, EndProbe, Failed
from rlplay.trace.records import Changed
from rlplay.trace.rehearsals import Rehearse
from rlplay.trace.runfile import RunWriter
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.branch_screen import BranchScreen
from rlplay.ui.health.health_screen import HealthScreen
from rlplay.ui.health.repair_screen import RepairScreen
from rlplay.ui.main.other_runs import OtherRuns
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.sources import ReplaySource
from tests.recorded import synthetic_started, synthetic_update
from tests.ui.rehearsed import answers, cut
from tests.ui.stage import Fed, home, on_screen, pressed, settled, until

LAST = 3


class Rehearses(Fed):
    """Answers every question at once, as far as `most` answers."""

    most = 99

    async def send(self, command):
        await super().send(command)
        if isinstance(command, Rehearse):
            self.put(*list(answers(command))[: self.most])

    def train(self):
        for number in range(1, LAST + 1):
            self.kept[number] = Update(number)
            for record in cut(number):
                self.kept[number].add(record)
            self.records(cut(number))
        self.status(LAST)

    @property
    def asked(self):
        return [command for command in self.commands if isinstance(command, Rehearse)]


@asynccontextmanager
async def sick(size=(120, 40), most=99, notifications=False):
    """A run in which most answers are cut, with the health check open."""
    source = Rehearses()
    source.most = most
    source.records([synthetic_started()])
    app = RlplayApp(source)
    async with app.run_test(size=size, notifications=notifications) as pilot:
        source.train()
        await settled(pilot)
        await pressed(pilot, "h")
        yield app, source, pilot


def text(app):
    options = app.screen.query_one(OptionList)
    rows = [str(options.get_option_at_index(n).prompt) for n in range(options.option_count)]
    said = [str(each.render()) for each in app.screen.query(SteadyStatic)]
    return "\n".join([said[0], *rows, said[1]])


def over(app):
    screen = app.screen
    return isinstance(screen, RepairScreen) and not screen.tried.under_way and not screen._judging.busy


async def test_one_key_tries_the_changes_beside_the_unchanged_run():
    async with sick() as (app, source, pilot):
        assert "try a repair" in str(app.screen.query_one("VerticalScroll").border_subtitle)
        await pressed(pilot, "!")
        changes = [{}, {"max_completion_length": 24}, {"max_completion_length": 48}]
        assert source.asked == [Rehearse(LAST, 5, changes, 1)]
        await until(pilot, lambda: over(app))
        app.screen.follow()
        shown = text(app)
        assert "the run, unchanged" in shown
        assert "✓ gone" in shown
        assert "20.0 % instead of 60.0 %" in shown
        assert "KL 0.006 → 0.016" in shown
        assert "▸ four times the limit of tokens" in shown, "the best is selected"
        assert f"update {LAST + 5}, changed" in shown
        await pressed(pilot, "up")
        assert "▸ twice the limit of tokens" in text(app)


async def test_one_key_more_goes_on_with_the_selected_change(monkeypatch):
    begun = []

    async def branch_off(_self, number, changes):
        begun.append((number, changes))

    monkeypatch.setattr(OtherRuns, "branch_off", branch_off)
    async with sick() as (app, _source, pilot):
        await pressed(pilot, "!")
        await until(pilot, lambda: over(app))
        app.screen.follow()
        await pressed(pilot, "a")
        await until(pilot, lambda: begun)
        assert begun == [(LAST, {"max_completion_length": 48})]
        assert app.screen is app.panels.main


async def test_a_run_that_goes_on_finishes_its_update_first():
    async with sick(most=0) as (app, source, pilot):
        source.status(LAST, running=True)
        await settled(pilot)
        await pressed(pilot, "!")
        assert [each for each in source.commands if isinstance(each, Advance)] == [Advance("update")]
        assert isinstance(source.commands[-1], Rehearse)
        assert "finishes its update first" in text(app)
        source.status(LAST + 1)
        await settled(pilot)
        app.screen.follow()
        assert "1 of 3: the run, unchanged, update 1 of 5." in text(app).replace("\n", " ")


async def test_esc_ends_it_and_enter_tries_the_rest():
    async with sick(size=(80, 24), most=7) as (app, source, pilot):
        await pressed(pilot, "!")
        assert "2 of 3: twice the limit of tokens, update 3 of 5." in text(app).replace("\n", " ")
        assert "esc ends this, and the run is where it was" in text(app).replace("\n", " ")
        await pressed(pilot, "escape")
        assert isinstance(app.screen, RepairScreen)
        assert isinstance(source.commands[-1], EndProbe)
        assert text(app).count("stopped") == 2
        source.most = 99
        await pressed(pilot, "enter")
        assert [each.remedy.changes for each in app.screen.tried.candidates[1:]] == source.asked[-1].changes
        await until(pilot, lambda: over(app))
        await pressed(pilot, "escape")
        assert isinstance(app.screen, HealthScreen)
        await pressed(pilot, "!")
        assert len(source.asked) == 2, "what was tried is still there"


async def test_a_setting_that_has_changed_meanwhile_makes_it_another_trial():
    async with sick() as (app, source, pilot):
        await pressed(pilot, "!")
        await until(pilot, lambda: over(app))
        await pressed(pilot, "escape")
        source.records([Changed(update=LAST + 1, phase="sample", name="learning_rate", value=0.5, previous=0.1)])
        await settled(pilot)
        await pressed(pilot, "!")
        assert len(source.asked) == 2
        assert source.asked[1].changes == source.asked[0].changes


async def test_closing_it_ends_what_is_under_way():
    async with sick(most=7) as (app, source, pilot):
        await pressed(pilot, "!", "q")
        assert isinstance(app.screen, HealthScreen)
        await until(pilot, lambda: isinstance(source.commands[-1], EndProbe))


async def test_settings_of_ones_own_are_tried_as_well():
    async with sick() as (app, source, pilot):
        await pressed(pilot, "!")
        await until(pilot, lambda: over(app))
        await pressed(pilot, "k")
        assert isinstance(app.screen, BranchScreen)
        app.screen.dismiss({"temperature": 0.05})
        await until(pilot, lambda: over(app) and len(source.asked) == 2)
        assert source.asked[1].changes == [{"temperature": 0.05}]
        app.screen.follow()
        assert "temperature 1 → 0.05  your own" in text(app)
        assert "cannot be tried" in text(app)
        assert "out of memory" in text(app)


async def test_more_updates_are_tried_when_asked_for():
    async with sick() as (app, source, pilot):
        await pressed(pilot, "!")
        await until(pilot, lambda: over(app))
        await pressed(pilot, "+", "enter")
        assert source.asked[-1].updates == 6
        assert len(source.asked[-1].changes) == 3


async def test_an_engine_that_ends_loses_nothing():
    async with sick(most=7) as (app, source, pilot):
        await pressed(pilot, "!")
        source.put(Failed("The engine ended: killed (SIGKILL)."))
        await settled(pilot)
        app.screen.follow()
        assert "The engine has ended. The run is saved" in text(app)
        assert text(app).count("stopped") == 2
        await home(pilot)


async def said(app, pilot):
    await until(pilot, lambda: app._notifications)
    return next(iter(app._notifications)).message


async def test_a_run_without_a_problem_says_so():
    async with on_screen(1, 2, size=(120, 35), notifications=True) as (app, _source, pilot):
        await app.play.perform("try")
        assert await said(app, pilot) == "No problem has been found yet, so there is nothing to repair."


async def test_an_update_under_way_is_finished_first():
    async with sick(notifications=True) as (app, source, pilot):
        source.records(cut(LAST + 1)[:1])
        await settled(pilot)
        await pressed(pilot, "!")
        assert await said(app, pilot) == "An update is under way. Press u to finish it, then try."
        assert source.asked == []


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("", "rlplay try {}"),
        ("TRL 1.16.0", "rlplay try {} --checkpoint DIR"),
        ("verl 0.5", "none of a checkpoint of verl 0.5"),
    ],
)
async def test_a_recording_names_the_command(tmp_path, source, names):
    path = tmp_path / "a.rlplay"
    writer = RunWriter.create(path, synthetic_started(source=source))
    for record in synthetic_update(1):
        writer.append(record)
    writer.close()
    app = RlplayApp(ReplaySource(path))
    async with app.run_test(size=(120, 35), notifications=True) as pilot:
        await settled(pilot)
        await app.play.perform("try")
        message = await said(app, pilot)
        assert names.format(path) in message
