"""Files that are no run files, or damaged ones, are refused in one clear line."""

from __future__ import annotations

import shutil
import sqlite3
from collections import deque
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rlplay.trace.runfile import RunFileError, RunReader, RunWriter
from tests.recorded import synthetic_run, synthetic_started, synthetic_update


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return synthetic_run(tmp_path / "run.rlplay", updates=2)


def refusal(path: Path) -> str:
    with pytest.raises(RunFileError) as caught:
        RunReader(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "rlplay runs" in refusal(tmp_path / "none.rlplay")


def test_a_folder(tmp_path: Path) -> None:
    assert "no run file" in refusal(tmp_path)


def test_a_file_of_another_kind(path: Path) -> None:
    path.write_text("step,reward\n1,0.5\n" * 100)
    assert "not a run file" in refusal(path)


def test_an_empty_file(path: Path) -> None:
    path.write_bytes(b"")
    assert "not a run file" in refusal(path)


def test_another_programs_database(tmp_path: Path) -> None:
    other = tmp_path / "notes.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE notes (text)")
    assert "not a run file of rlplay" in refusal(other)


def test_a_newer_format(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    assert "format 99" in refusal(path)
    assert "upgrade rlplay" in refusal(path)
    with pytest.raises(RunFileError):
        RunWriter.reopen(path)


def test_a_file_cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(RunFileError, match=str(path)):
        RunReader(path).load(2)


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"x\x9c\x03\x00\x00\x00\x00\x01"])
def test_one_damaged_record_does_not_spoil_the_others(path: Path, damage: bytes) -> None:
    with sqlite3.connect(path) as db:
        db.execute("UPDATE records SET data = ? WHERE number = 2 AND kind = 'credited'", (damage,))
    reader = RunReader(path)
    with pytest.raises(RunFileError, match="update 2 is damaged"):
        reader.load(2)
    assert reader.load(1).finished is not None
    assert reader.history().latest("reward") is not None


def test_an_update_that_is_not_there(path: Path) -> None:
    with pytest.raises(RunFileError, match="has no update 3; it has updates 1 to 2"):
        RunReader(path).load(3)


def test_a_run_is_not_overwritten(path: Path) -> None:
    with pytest.raises(RunFileError, match="exists already"):
        RunWriter.create(path, synthetic_started())
    assert RunReader(path).updates() == [1, 2]


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFileError, match="cannot be created"):
        RunWriter.create(tmp_path / "file" / "run.rlplay", synthetic_started())


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer._db.execute("PRAGMA max_page_count = 20")
    records = [record for number in range(1, 20) for record in synthetic_update(number)]
    with pytest.raises(RunFileError, match="free space"):
        deque(map(writer.append, records), maxlen=0)
    assert RunReader(writer.path).started.title == "Word problems"


def test_a_run_on_a_read_only_disk_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def without_rights(name: str, **options: Any) -> sqlite3.Connection:
        if "mode=rw" in name:
            raise sqlite3.OperationalError("unable to open database file")
        opened: sqlite3.Connection = connect(name, **options)
        return opened

    monkeypatch.setattr(sqlite3, "connect", without_rights)
    assert RunReader(path).updates() == [1, 2]
    with pytest.raises(RunFileError, match="cannot be written"):
        RunWriter.reopen(path)


@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_file_that_is_deleted_while_it_is_written_is_written_again(tmp_path: Path, whole_folder: bool) -> None:
    writer = RunWriter.create(tmp_path / "runs" / "run.rlplay", synthetic_started())
    for record in synthetic_update(1):
        writer.append(record)
    reader = RunReader(writer.path)
    if whole_folder:
        shutil.rmtree(writer.path.parent)
    else:
        writer.path.unlink()
    assert reader.updates() == [1]
    assert not reader.is_replaced(), "there is nothing yet in its place"
    for record in synthetic_update(2):
        writer.append(record)
    assert reader.is_replaced()
    with closing(RunReader(writer.path)) as again:
        assert again.updates() == [1, 2]
        assert again.load(1).finished is not None
    writer.close()
    reader.close()
    with closing(RunReader(writer.path)) as again:
        assert again.updates() == [1, 2]
        assert again.latest("reward") is not None
    assert [path.name for path in writer.path.parent.iterdir()] == ["run.rlplay"]


def test_a_disk_that_is_full_midway_and_has_room_again_loses_nothing(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    known = [*synthetic_update(1), *synthetic_update(2)]
    (pages,) = writer._db.execute("PRAGMA page_count").fetchone()
    writer._db.execute(f"PRAGMA max_page_count = {pages + 4}")
    stored: list[object] = []
    with pytest.raises(RunFileError, match="free space"):
        deque((stored.append(writer.append(record)) for record in known), maxlen=0)
    writer._db.execute("PRAGMA max_page_count = 100000")
    for record in known[len(stored) :]:
        writer.append(record)
    writer.close()
    with closing(RunReader(writer.path)) as reader:
        assert [kind for kind, _, _ in reader.events()] == ["started", *(type(each).__name__.lower() for each in known)]


def test_a_folder_that_becomes_read_only_is_reported(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer._db.execute("PRAGMA query_only = ON")
    with pytest.raises(
        RunFileError, match=r"run\.rlplay cannot be written \(attempt to write a readonly database\); check"
    ):
        writer.append(synthetic_update(1)[0])
