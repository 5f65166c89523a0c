"""Where runs are kept and how they are found again."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rlplay import paths


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path))
    return tmp_path


def made(name: str) -> Path:
    path = paths.new_run(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


def test_runs_live_under_rlplay_home_or_the_platforms_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.runs_folder() == home / "runs"
    monkeypatch.delenv("RLPLAY_HOME")
    assert paths.runs_folder().parts[-2:] == ("rlplay", "runs")


def test_a_new_path_is_readable_safe_and_free(home: Path) -> None:
    assert not paths.runs_folder().exists()
    first, second = made("Learn to think!/.."), made("Learn to think!/..")
    assert first.parent == home / "runs"
    assert "learn-to-think" in first.stem
    assert first != second
    assert "_run" in paths.new_run("東").stem


def test_two_that_begin_in_the_same_second_get_paths_of_their_own(home: Path) -> None:
    first, second = paths.new_run("seed"), paths.new_run("seed")
    assert first != second, "although neither has been written yet"
    script = "from rlplay import paths; print(paths.new_run('other'))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert not Path(printed.strip()).with_suffix(".snapshots").exists(), "nothing stays of a run that never began"


RESERVES = "import sys; from rlplay import paths; print(paths.new_run('other'), flush=True); sys.stdin.read()"


def test_what_a_killed_program_had_reserved_is_removed(home: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", RESERVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    run = Path(program.stdout.readline().strip())
    left = run.with_suffix(".snapshots")
    copied, draft = left / "000001.safetensors", run.with_name(f"{run.name}.0123abcd.new")
    for path in (copied, draft):
        path.write_text("of a copy that was not completed")
    paths.new_run("seed")
    assert (left.exists(), copied.exists(), draft.exists()) == (True, True, True), "that program is still loading"
    program.kill()
    program.communicate()
    begun, full, link = (home / "runs" / f"{name}.snapshots" for name in ("begun", "full", "link"))
    for folder in (begun, full):
        folder.mkdir()
    begun.with_suffix(".rlplay").write_text("")
    (full / "000001.safetensors").write_text("a state")
    link.symlink_to(full)
    paths.new_run("seed")
    assert (left.exists(), copied.exists(), draft.exists()) == (False, False, False)
    assert [folder.exists() for folder in (begun, full, link)] == [True] * 3


LEAVES = """
import sys; from rlplay import paths
with paths.scratch_folder() as folder:
    (folder / "state").write_text("large"); print(folder, flush=True); sys.stdin.read()
"""


def test_scratch_is_removed_even_if_its_program_was_killed() -> None:
    program = subprocess.Popen([sys.executable, "-c", LEAVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    left = Path(program.stdout.readline().strip())
    with paths.scratch_folder() as own:
        assert own.is_dir()
        assert (left / "state").exists(), "that program still works with it"
    assert not own.exists()
    program.kill()
    program.communicate()
    paths.sweep()
    assert not left.exists()


def test_where_no_folder_can_be_made_there_is_a_path_still(home: Path) -> None:
    (home / "runs").write_text("a file")
    assert paths.new_run("seed").parent == home / "runs"


def test_runs_are_listed_newest_first() -> None:
    assert paths.list_runs() == []
    folder = paths.runs_folder()
    folder.mkdir()
    names = [f"{day}_10-00-00_{name}" for day, name in (("2026-01-02", "a"), ("2026-02-01", "b"), ("2025-12-31", "c"))]
    for name in names:
        (folder / f"{name}.rlplay").write_text("")
    (folder / "2027-01-01_10-00-00_d.rlplay.new").write_text("")
    assert [run.stem for run in paths.list_runs()] == [names[1], names[0], names[2]]


def test_last_is_the_newest_run_of_ones_own() -> None:
    folder = paths.runs_folder()
    folder.mkdir()
    for copied, year in (("trl-run_0123abcd", 2026), ("trl-run_4567abcd", 2020)):
        (folder / f"{copied}.rlplay").write_text("")
        moment = datetime.datetime(year, 1, 1, 12).timestamp()
        os.utime(folder / f"{copied}.rlplay", (moment, moment))
    assert paths.find_run("last").stem == "trl-run_0123abcd", "without one, the newest copy"
    own = folder / "2025-06-01_10-00-00_soup.rlplay"
    own.write_text("")
    assert [run.stem for run in paths.list_runs()] == ["trl-run_0123abcd", own.stem, "trl-run_4567abcd"]
    assert paths.find_run("last") == own
    assert paths.shortest_name(own) == "last"
    assert paths.shortest_name(paths.list_runs()[0]) == "trl-run_0123abcd"


def test_a_run_is_found_by_path_name_part_and_last() -> None:
    run = made("learn-to-think")
    for given in (run, run.name, run.stem, "think", "last"):
        assert paths.find_run(given) == run
    other = made("think-twice")
    with pytest.raises(ValueError, match=rf"'think' matches 2 runs, newest first: {other.stem}, {run.stem}; write"):
        paths.find_run("think")
    with pytest.raises(ValueError, match="no run 'none'"):
        paths.find_run("none")


def test_a_name_comes_before_how_one_begins_and_that_before_a_part_of_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "runs").mkdir()
    runs = {name: home / "runs" / f"{name}.rlplay" for name in ("a", "ab", "b-a", "b-c-ab")}
    for run in runs.values():
        run.write_text("")
    for given, name in (("a", "a"), ("ab", "ab"), ("b-a.rlplay", "b-a"), ("b-c", "b-c-ab"), ("c-a", "b-c-ab")):
        assert paths.find_run(given) == runs[name]
    with pytest.raises(ValueError, match="'b' matches 2 runs, newest first: b-c-ab, b-a;"):
        paths.find_run("b")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ab").write_text("")
    assert paths.find_run("ab") == Path("ab")


def test_of_many_runs_that_fit_the_newest_are_listed(home: Path) -> None:
    (home / "runs").mkdir()
    for number in range(7):
        (home / "runs" / f"run-{number}.rlplay").write_text("")
    with pytest.raises(ValueError, match="matches 7 runs, newest first: run-6, run-5, run-4, run-3, run-2, …; write"):
        paths.find_run("run")
