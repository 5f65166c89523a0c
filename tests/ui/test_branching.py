"""A second run that branches off the first: its copy on disk, its start and what the comparison shows meanwhile."""

import threading

import pytest

from rlplay.link.messages import Advance, Prefer, Set, Withhold
from rlplay.trace.branch import Stopped, branch
from rlplay.trace.history import History
from rlplay.trace.records import Changed, Withheld
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.update import Update
from rlplay.ui.app import RlplayApp
from rlplay.ui.compare.branch_screen import BranchScreen
from rlplay.ui.compare.compare_screen import CompareScreen
from rlplay.ui.labels.label_screen import LabelScreen
from rlplay.ui.main import other_runs
from rlplay.ui.main.copying import CopyingScreen
from rlplay.ui.parts.steady_static import SteadyStatic
from rlplay.ui.session.happenings import Restored
from tests.recorded import synthetic_run, synthetic_started, synthetic_update
from tests.ui.comparison import SIZE, head, opened
from tests.ui.stage import Fed, on_screen, pressed, settled, until


async def test_differences_are_shown_only_once_they_are_known():
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    source.records([synthetic_started()])
    source.update(1)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        app.screen.follow()
        assert "B is starting…" in head(app.screen)
        assert "nothing" not in head(app.screen)
        second.records([synthetic_started()])
        second.update(1)
        await settled(pilot)
        app.screen.follow()
        assert "at update 1 both have equal settings, answers and numbers" in head(app.screen)
        second.records([Changed(update=2, phase="sample", name="beta", value=0.1, previous=0.05)])
        second.status(1, beta=0.1)
        await settled(pilot)
        app.screen.follow()
        assert "settings, answers and numbers; B changes later: beta 0.05 → 0.1" in head(app.screen)


async def test_a_branch_that_is_still_starting_shows_all_of_the_updates_it_shares():
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    history = History()
    source.records([synthetic_started()])
    for number in (1, 2):
        source.update(number)
        second.kept[number] = Update(number)
        for record in synthetic_update(number):
            second.kept[number].add(record)
            history.add(record)
    second.put(Restored(history, SettingsTimeline(synthetic_started().settings)))
    async with app.run_test(size=SIZE) as pilot:
        screen = await opened(pilot)
        assert "B is starting…" in head(screen)
        assert screen.runs.number == 2
        await app.play.perform("maths")
        screen.follow()
        formulas = [inspector.clipping()[1] for inspector in screen.inspectors]
        assert "its loss before step" in formulas[1]
        assert formulas[0] == formulas[1]


@pytest.mark.parametrize("size", [SIZE, (80, 24)])
async def test_a_branch_that_waits_for_labels_says_so_and_gets_them(size):
    source, second = Fed(), Fed()
    app = RlplayApp(source, others=[second])
    for each in (source, second):
        each.records([synthetic_started()])
        each.status()
    second.records(synthetic_update(1, prompts=3, generations=2)[:1])
    second.waiting(0, 1, 2)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        app.screen.follow()
        assert "update 0 · waiting for your labels: press A" in head(app.screen)
        await pressed(pilot, "A")
        assert isinstance(app.screen, LabelScreen)
        assert "Which is better? · run B, nowhere" in app.screen.query_one("Vertical").border_title
        await pressed(pilot, "right", "escape")
        assert isinstance(app.screen, CompareScreen)
    assert Prefer(0, "b") in second.commands
    assert source.commands == []


async def test_a_branch_is_a_copy_with_an_engine_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    second = Fed()
    jobs = []
    monkeypatch.setattr(other_runs, "LiveSource", lambda job: jobs.append(job) or second)
    async with on_screen(size=SIZE) as (app, source, pilot):
        source.path = synthetic_run(tmp_path / "a.rlplay", 4)
        for number in range(1, 5):
            source.update(number)
            source.kept[number] = RunReader(source.path).load(number)
        await settled(pilot)
        await pressed(pilot, "g", "up", "up", "b")
        assert isinstance(app.screen, BranchScreen)
        assert "Branch from update 3" in app.screen.query_one("Vertical").border_title
        app.screen.draft.put("beta", 0.2)
        await pilot.press("a")
        second.records([synthetic_started()])
        second.status(3)
        await until(pilot, lambda: second.commands and isinstance(app.screen, CompareScreen))
        (job,) = jobs
        with RunReader(job.run) as reader:
            assert reader.updates() == [1, 2, 3]
        assert (job.resume, job.device, job.threads) == (True, "cpu", 1)
        assert second.commands == [Set({"beta": 0.2}), Advance("update")]
        assert source.commands == [], "the run on the screen stays as it is"
        assert isinstance(app.screen, CompareScreen)
        second.status(4)
        await settled(pilot)
        assert len(second.commands) == 2
    assert second.closed == 1


async def test_a_branch_goes_without_the_credit_of_tokens(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))
    second = Fed()
    monkeypatch.setattr(other_runs, "LiveSource", lambda _job: second)
    async with on_screen(3, size=SIZE) as (app, source, pilot):
        source.path = synthetic_run(tmp_path / "a.rlplay", 3)
        await settled(pilot)
        app.run_worker(app.play.other_runs.branch_off(2, {}, [0, 4, 5]))
        second.records([synthetic_started()])
        second.status(2)
        await until(pilot, lambda: len(second.commands) == 2 and isinstance(app.screen, CompareScreen))
        assert second.commands == [Withhold(3, [0, 4, 5]), Advance("update")]
        second.records([Withheld(update=3, tokens=[0, 4, 5])])
        for number in (1, 2, 3):
            second.update(number)
        await settled(pilot)
        app.screen.follow()
        assert "at update 3, B differs in: tokens without credit 0 → 3" in head(app.screen)
        for each in (source, second):
            each.update(4)
        await settled(pilot)
        assert app.screen.runs.number == 4
        assert app.screen.runs.differences() == []
        assert app.screen.runs.earlier == ["tokens without credit"]


async def test_keys_wait_while_a_run_is_copied_and_escape_gives_it_up(monkeypatch):
    def copied(_parent, _number, _path, going):
        halfway.set()
        while going(0.5):
            given_up.wait(0.01)  # leaves the processor to the screen
        raise Stopped

    halfway, given_up = threading.Event(), threading.Event()
    monkeypatch.setattr(other_runs, "branch", copied)
    async with on_screen(1, size=(80, 24)) as (app, source, pilot):
        await pressed(pilot, "b")
        await pilot.press("a", "u", "z", "space", "k", "q")
        await until(pilot, halfway.is_set)
        screen = app.screen
        assert isinstance(screen, CopyingScreen)
        screen.add_class("-long")
        await until(pilot, lambda: " 50%" in str(screen.query_one(SteadyStatic).render()))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.panels.main)
        assert source.commands == []
        assert app.play.other_runs.sessions == []


def test_of_a_copy_that_is_given_up_nothing_is_left(tmp_path):
    shares = []
    path = synthetic_run(tmp_path / "a.rlplay", 4)
    with pytest.raises(Stopped):
        branch(path, 3, tmp_path / "b.rlplay", lambda share: shares.append(share) or share < 0.5)
    assert shares == sorted(shares)
    assert 0 == shares[0] < shares[-1] < 1
    assert not list(tmp_path.glob("b*"))


async def test_a_branch_begins_after_the_update_that_is_looked_at():
    async with on_screen(size=SIZE) as (app, source, pilot):
        for number in range(1, 5):
            source.update(number)
        await settled(pilot)
        for keys, begin in ((("b",), 4), (("[", "[", "b"), 2), (("g", "end", "b"), 4)):
            await pressed(pilot, *keys)
            assert f"Branch from update {begin}: what" in app.screen.query_one("Vertical").border_title
            await pilot.press("escape")
        source.records(synthetic_update(5)[:1])
        await settled(pilot)
        app.play.session.look_at(5)
        await pressed(pilot, "b")
        assert "Branch from update 4, because 5 is not finished yet" in app.screen.query_one("Vertical").border_title


async def test_a_run_that_cannot_be_branched_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    async with on_screen(size=SIZE) as (app, source, pilot):
        source.path = tmp_path / "gone.rlplay"
        source.update(1)
        await settled(pilot)
        await pressed(pilot, "b")
        await pilot.press("a")
        await until(pilot, lambda: app._notifications)
        assert app.play.other_runs.sessions == []
        assert any("no run file at" in notice.message for notice in app._notifications)


def test_a_branch_of_thinned_updates_keeps_their_numbers(tmp_path):
    path = synthetic_run(tmp_path / "a.rlplay", 3)
    writer = RunWriter.reopen(path)
    writer._db.execute("DELETE FROM records WHERE number = 2 AND kind = 'sampled'")
    writer.close()
    branch(path, 2, tmp_path / "b.rlplay")
    with RunReader(tmp_path / "b.rlplay") as reader:
        assert reader.updates() == [1, 2]
        assert reader.detailed() == [1]
        assert reader.history().series("reward")[0] == [1, 2]
        assert reader.started.run_id != "synthetic-1"
