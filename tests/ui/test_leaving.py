"""What stands on the terminal once the screen is gone."""

import pytest

from rlplay import paths
from rlplay.link.messages import Recorded
from rlplay.scenario.loader import load
from rlplay.scenario.schema import Job
from rlplay.ui import start
from tests.recorded import synthetic_run, synthetic_update


@pytest.fixture
def leaving_after(monkeypatch, tmp_path):
    """Leaves the screen after an update, or after none."""
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))

    def after(updates: int) -> None:
        def run(app) -> int:
            for number in range(1, updates + 1):
                for record in synthetic_update(number):
                    app.play.session.apply(Recorded(record))
            return 0

        monkeypatch.setattr(start.RlplayApp, "run", run)

    return after


def test_leaving_a_run_with_updates_prints_its_path_and_how_to_resume(leaving_after, capsys):
    leaving_after(1)
    paths.runs_folder().mkdir(parents=True)
    new = synthetic_run(paths.new_run("learn-to-think"), 1)
    start.play(Job(load("learn-to-think"), str(new)))
    printed = capsys.readouterr()
    assert printed.err == f"run kept: {new} · rlplay resume last\n"
    assert printed.out == ""


def test_it_goes_on_by_its_own_name_where_it_is_not_the_newest(leaving_after, tmp_path):
    leaving_after(1)
    paths.runs_folder().mkdir(parents=True)
    old, new = (paths.runs_folder() / f"2026-11-2{day}_learn{paths.SUFFIX}" for day in (1, 2))
    old.touch()
    new.touch()
    assert start.kept(old).endswith("rlplay resume 2026-11-21_learn")
    assert start.kept(new).endswith("rlplay resume last")
    assert start.kept(tmp_path / "my run.rlplay").endswith(f"rlplay resume '{tmp_path}/my run.rlplay'")


def test_leaving_before_the_first_update_or_a_replay_prints_nothing(leaving_after, tmp_path, capsys):
    leaving_after(0)
    start.play(Job(load("learn-to-think"), str(tmp_path / "new.rlplay")))
    leaving_after(1)
    start.replay(synthetic_run(tmp_path / "old.rlplay", 1))
    assert capsys.readouterr().err == ""
