"""A few bytes of a stranger's file that stand for many are refused, one by one and together."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from rlplay.containment import OwnError
from rlplay.foreign.layouts import parquet
from rlplay.record.format import MAGIC, RecordingError, Remark, pack, part, read
from rlplay.tasks.own_prompts import load_own
from rlplay.trace import inflate, runfile_format
from rlplay.trace.inflate import Budget
from rlplay.trace.parquet_rows import parquet_rows
from rlplay.trace.records import Changed
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import RunFileError
from tests.recorded import synthetic_started


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflate, "_AT_LEAST", 1000)


@pytest.mark.usefixtures("little")
def test_pieces_share_one_budget() -> None:
    piece = zlib.compress(b"x" * 400)
    budget = Budget(1)
    assert [len(budget.inflated(piece, 400)) for _ in range(2)] == [400, 400]
    with pytest.raises(ValueError, match="it holds more than 0 MiB"):
        budget.inflated(piece, 400)
    larger = Budget(100)
    assert sum(len(larger.inflated(piece, 400)) for _ in range(5)) == 20 * 100
    with pytest.raises(ValueError, match="cut off"):
        Budget(1).inflated(piece[:-1], 500)
    with pytest.raises(ValueError, match="holds more than"):
        Budget(100).inflated(piece, 399)


@pytest.mark.usefixtures("little")
def test_the_frames_of_a_recording(tmp_path: Path) -> None:
    path = part(tmp_path, 0)
    path.write_bytes(MAGIC + b"".join(pack(Remark(update=n, text="x" * 5000)) for n in range(40)))
    with pytest.raises(RecordingError, match=r"damaged at byte \d+ \(it holds more than .*; copy it again"):
        read(path)


@pytest.mark.usefixtures("little")
def test_the_records_of_a_run(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "a.rlplay", synthetic_started())
    for update in range(1, 40):
        writer.append(Changed(update=update, phase="sample", name="x", value="y" * 5000, previous=0))
    with RunReader(writer.path) as reader, pytest.raises(RunFileError, match="it holds more than"):
        reader.timeline()


def test_a_record_that_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runfile_format, "_LARGEST", 2**20)
    writer = RunWriter.create(tmp_path / "a.rlplay", synthetic_started())
    with pytest.raises(RunFileError, match="of update 3 takes 2 MiB, more than 1; lower candidates"):
        writer.append(Changed(update=3, phase="sample", name="x", value="y" * 2**21, previous=0))


def table(path: Path, rows: int, word: str) -> Path:
    arrow, writing = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writing.write_table(arrow.table({"prompt": [word] * rows, "nothing": arrow.nulls(rows)}), path)
    return path


def test_values_within_values_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow, writing = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(inflate, "_AT_LEAST", 2**20)
    columns = {
        "few": arrow.array(["y" * 2000, *[""] * 99] * 20).dictionary_encode().take(arrow.array([0] * 2000)),
        "lists": arrow.array([[0] * 500] * 200), "structs": arrow.array([{"a": {"b": [True] * 500}}] * 200),
    }  # fmt: skip
    for name, column in columns.items():
        writing.write_table(arrow.table({name: column}), tmp_path / name)
        with pytest.raises(ValueError, match="it holds more than 1 MiB"):
            parquet_rows(tmp_path / name)


def test_the_rows_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path / "rows.parquet", 3000, "y" * 1000)
    assert parquet_rows(path) == [{"prompt": "y" * 1000, "nothing": None}] * 3000
    monkeypatch.setattr(inflate, "_AT_LEAST", 2**20)
    with pytest.raises(ValueError, match="it holds more than 1 MiB"):
        parquet(path)
    with pytest.raises(OwnError, match="cannot be read as Parquet: it holds more than 1 MiB"):
        load_own(path, {})
