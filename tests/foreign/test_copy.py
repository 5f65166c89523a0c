"""The local run file of a foreign run, kept up to date by one program or by two."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rlplay.foreign.copy import Copy, copy_again
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.record import Recorder
from rlplay.record.format import part
from rlplay.trace.files_on_disk import check_unused, delete
from rlplay.trace.records import Started
from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import unpack
from tests.cli.command_line import called
from tests.foreign.same import encoded, parts_of, read_at_once
from tests.record.batches import answers, begun, record, write


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RLPLAY_HOME", str(tmp_path / "home"))


def stored(path: Path) -> list[bytes]:
    """What the run file holds on its live branch, without its beginning."""
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT data, number FROM records WHERE branch = 0 ORDER BY id").fetchall()
    records = [unpack(data, path, number) for data, number in rows]
    return encoded([record for record in records if not isinstance(record, Started)])


def test_the_run_file_holds_what_was_recorded(tmp_path: Path) -> None:
    record(tmp_path / "run", [answers(n, 2, 2, 2) for n in range(3)], [2])
    copy = Copy(tmp_path / "run")
    assert stored(copy.path) == encoded(read_at_once(tmp_path / "run"))
    assert copy.pull() == 0


def test_a_run_file_of_a_stranger_follows_no_folder(tmp_path: Path) -> None:
    """It may name any folder as its origin; only where this user's copies are does a run file follow one."""
    record(tmp_path / "run", [answers(0, 2, 2, 2)], [2])
    copy = Copy(tmp_path / "run")
    with RunReader(copy.path) as reader:
        found = copy_again(reader)
        assert found is not None
        assert found.path == copy.path
    theirs = shutil.copy(copy.path, tmp_path / "theirs.rlplay")
    with RunReader(theirs) as reader:
        assert copy_again(reader) is None


def test_the_run_file_is_used_again(tmp_path: Path) -> None:
    recorder = begun(tmp_path / "run")
    write(recorder, 1, answers(1, 2, 2, 1), range(4))
    first = Copy(tmp_path / "run")
    write(recorder, 2, answers(2, 2, 2, 1), range(4))
    second = Copy(tmp_path / "run")
    assert second.path == first.path
    assert stored(second.path) == encoded(read_at_once(tmp_path / "run"))
    with RunReader(second.path) as run:
        again = copy_again(run)
    assert again is not None
    assert again.path == first.path


def test_two_copies_at_once_keep_one_run_file_right(tmp_path: Path) -> None:
    record(tmp_path / "source", [answers(n, 2, 2, 3) for n in range(4)], [2])
    whole, run = parts_of(tmp_path / "source"), tmp_path / "run"
    run.mkdir()
    copies: list[Copy] = []
    for share in range(1, 41):
        for name, data in whole.items():
            (run / name).write_bytes(data[: len(data) * share // 40])
        if share == 4:
            copies = [Copy(run), Copy(run)]
        # Both have read the same; only one may add it.
        for copy in copies[:: 1 if share % 3 else -1]:
            copy.pull()
    for copy in copies:
        copy.pull()
    assert copies[0].path == copies[1].path
    assert stored(copies[0].path) == encoded(read_at_once(tmp_path / "source"))


def test_two_programs_that_create_the_run_file_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlplay.trace import runfile

    record(tmp_path / "run", [answers(1, 2, 2, 1)], [])
    made: list[Copy] = []
    move = runfile.publish

    def late(draft: Path, path: Path) -> None:
        monkeypatch.setattr(runfile, "publish", move)
        made.append(Copy(tmp_path / "run"))  # another program is faster
        move(draft, path)

    monkeypatch.setattr(runfile, "publish", late)
    made.append(Copy(tmp_path / "run"))
    assert made[0].path == made[1].path
    assert not list(made[0].path.parent.glob("*.new"))
    assert stored(made[0].path) == encoded(read_at_once(tmp_path / "run"))


def test_another_run_in_the_same_folder_is_another_file(tmp_path: Path) -> None:
    for run_id in ("a", "b"):
        with Recorder(tmp_path / "run") as recorder:
            recorder.begin("T", {}, run_id=run_id)
        Copy(tmp_path / "run")
        shutil.rmtree(tmp_path / "run")
    assert len(list((tmp_path / "home").rglob("*.rlplay"))) == 2


def test_the_command_line_takes_a_folder_as_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(tmp_path / "outputs" / "rlplay", [answers(n, 2, 2, 1) for n in range(2)], [])
    for number, folder in enumerate(("outputs", "outputs/rlplay")):
        status, _, error = called(
            capsys, "export", str(tmp_path / folder), "--format", "jsonl", "--out", str(tmp_path / f"{number}.jsonl")
        )
        assert status == 0, error
        assert len((tmp_path / f"{number}.jsonl").read_text().splitlines()) == 8


def test_a_folder_without_a_run_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    status, _, error = called(capsys, "import", str(tmp_path / "empty"))
    assert status == 2
    assert "empty holds no run that rlplay can read" in error
    record(tmp_path / "run", [answers(1, 2, 2, 1)], [])
    path = part(tmp_path / "run", 0)
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    status, _, error = called(capsys, "import", str(tmp_path / "run"))
    assert status == 2
    assert f"{path} is damaged at byte" in error
    assert "Traceback" not in error


def test_a_run_that_is_gone_is_no_copy(tmp_path: Path) -> None:
    record(tmp_path / "run", [answers(1, 2, 2, 1)], [])
    copy = Copy(tmp_path / "run")
    shutil.rmtree(tmp_path / "run")
    with RunReader(copy.path) as run:
        assert copy_again(run) is None
    with pytest.raises(ForeignRunError):
        Copy(tmp_path / "run")


def test_a_copy_is_open_for_writing_only_while_it_grows(tmp_path: Path) -> None:
    with begun(tmp_path / "run") as recorder:
        write(recorder, 1, answers(1, 2, 2, 1), range(4))
        copy = Copy(tmp_path / "run")
        check_unused(copy.path)
        write(recorder, 2, answers(2, 2, 2, 1), range(4))
        assert copy.pull()
        check_unused(copy.path)
    delete(copy.path, only_snapshots=False)
    assert not copy.path.exists()
