"""Run files: what is appended is there, whoever reads and however the writer ends."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlplay.trace.codec import RECORDS
from rlplay.trace.history import History
from rlplay.trace.records import AnyRecord, Changed, Finished, Notice, Rewound, Sampled, Stepped
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.thinning import RECENT, stride
from rlplay.trace.update import Update
from tests.recorded import (
    synthetic_evaluated,
    synthetic_run,
    synthetic_sampling,
    synthetic_started,
    synthetic_update,
)

ROOT = Path(__file__).parents[2]
NOTHING = np.zeros(0, dtype=np.float32)
SMALL = synthetic_update(1, prompts=1, generations=2, length=3, steps=1)


def again(number: int) -> list[AnyRecord]:
    """The same small update under another number, for runs of many updates."""
    return [msgspec.structs.replace(record, update=number) for record in SMALL]


def changed(update: int, value: float, phase: str = "sample") -> Changed:
    return Changed(update=update, phase=phase, name="epsilon", value=value, previous=0.2)


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter.create(tmp_path / "run.rlplay", synthetic_started())


def encoded(update: Update) -> list[bytes]:
    records = [update.sampled, update.scored, update.credited, *update.steps, update.finished]
    return [RECORDS.encode(record) for record in records if record is not None]


def test_what_is_appended_can_be_read(tmp_path: Path) -> None:
    path = synthetic_run(tmp_path / "run.rlplay", updates=3)
    with RunReader(path) as reader:
        assert reader.started == synthetic_started()
        assert reader.updates() == reader.detailed() == [1, 2, 3]
        for number in (1, 2, 3):
            assert encoded(reader.load(number)) == [RECORDS.encode(record) for record in synthetic_update(number)]
        evaluated = reader.history().series("eval_reward")
    assert evaluated == ([2], [synthetic_evaluated(2).metrics["eval_reward"]])
    assert os.listdir(tmp_path) == ["run.rlplay"]


def test_completions_being_sampled_are_not_kept(writer: RunWriter) -> None:
    partial = synthetic_sampling(1)
    for record in partial:
        writer.append(record)
    kept = [record for _, record in RunReader(writer.path).follow(0) if isinstance(record, Sampled)]
    assert [record.done for record in kept] == [True]


def test_a_reader_sees_each_commit_at_once_and_follows_a_growing_run(writer: RunWriter) -> None:
    reader = RunReader(writer.path)
    last = reader.last_id()
    for record in synthetic_update(1):
        writer.append(record)
        ((last, found),) = reader.follow(last)
        assert RECORDS.encode(found) == RECORDS.encode(record)
    assert last == reader.last_id()
    assert reader.follow(last) == []
    assert reader.updates() == [1]


def test_numbers_are_queryable_without_rlplay(tmp_path: Path) -> None:
    path = synthetic_run(tmp_path / "run.rlplay", updates=2)
    rows = sqlite3.connect(path).execute("SELECT number FROM metrics WHERE name = 'reward' AND branch = 0").fetchall()
    assert rows == [(1,), (2,)]


def test_a_number_that_is_none_comes_back(writer: RunWriter) -> None:
    finished = again(1)[-1]
    assert isinstance(finished, Finished)
    writer.append(msgspec.structs.replace(finished, metrics={"a": float("nan"), "b": float("inf")}))
    history = RunReader(writer.path).history()
    assert str([history.latest("a"), history.latest("b")]) == "[nan, inf]"


def test_a_rewind_abandons_what_came_later_but_deletes_nothing(writer: RunWriter) -> None:
    for number in (1, 2, 3):
        for record in synthetic_update(number):
            writer.append(record)
        writer.append(changed(number + 1, number / 10))
        writer.add_snapshot(number, writer.path.parent / f"{number}.safetensors", 10)
    writer.append(Rewound(update=1, abandoned=3))
    for record in synthetic_update(2, seed=5):
        writer.append(record)
    reader = RunReader(writer.path)
    history = reader.history()
    assert reader.updates() == history.series("reward")[0] == [1, 2]
    assert encoded(reader.load(2)) == [RECORDS.encode(record) for record in synthetic_update(2, seed=5)]
    assert [segment[0] for segment in history.abandoned("reward")] == [[2, 3]]
    assert reader.changes() == [changed(2, 0.1)]
    assert [snapshot.update for snapshot in writer.snapshots()] == [1]
    assert history.marks == [(2, "epsilon 0.2 → 0.1", "changed"), (1, "rewound from 3", "back")]
    assert sum(isinstance(record, Finished) for _, record in reader.follow(0)) == 4


def test_an_update_cut_short_and_begun_again_is_there_once(writer: RunWriter) -> None:
    for record in synthetic_update(1, steps=4)[:-1]:
        writer.append(record)
    assert RunReader(writer.path).load(1).phase == "update"
    writer.close()
    resumed = RunWriter.reopen(writer.path)
    for record in synthetic_update(1, seed=1):
        resumed.append(record)
    assert encoded(RunReader(writer.path).load(1)) == [RECORDS.encode(r) for r in synthetic_update(1, seed=1)]


@st.composite
def lives(draw: st.DrawFn) -> list[AnyRecord]:
    """A run's records: updates, evaluations, changes and rewinds in any order that can happen."""
    records: list[AnyRecord] = []
    reached = 0
    for _ in range(draw(st.integers(0, 12))):
        match draw(st.sampled_from(["update", "update", "evaluate", "change", "rewind"])):
            case "update":
                reached += 1
                records += again(reached)
            case "evaluate":
                records.append(synthetic_evaluated(reached))
            case "change":
                records.append(changed(reached + 1, 0.5, draw(st.sampled_from(["sample", "score"]))))
            case "rewind":
                target = draw(st.integers(0, reached))
                records.append(Rewound(update=target, abandoned=reached))
                reached = target
    return records


@settings(max_examples=20)
@given(records=lives())
def test_a_history_read_back_is_the_one_that_was_lived(
    tmp_path_factory: pytest.TempPathFactory, records: list[AnyRecord]
) -> None:
    lived = History()
    run = RunWriter.create(tmp_path_factory.mktemp("run") / "run.rlplay", synthetic_started())
    for record in records:
        lived.add(record)
        run.append(record)
    run.close()
    with RunReader(run.path) as reader:
        read = reader.history()
        finished = reader.updates()
    assert set(read.names()) == set(lived.names())
    for name in lived.names():
        assert read.series(name) == lived.series(name)
        assert read.abandoned(name) == lived.abandoned(name)
        assert read.latest(name) == lived.latest(name)
    assert read.marks == lived.marks
    assert finished == lived.series("reward")[0]


def test_detail_stays_bounded_and_numbers_stay(writer: RunWriter) -> None:
    last = 1100
    for number in range(1, last + 1):
        for record in again(number):
            writer.append(record)
        if number % 100 == 0:
            writer.append(changed(number + 1, 0.1))
    reader = RunReader(writer.path)
    detailed = reader.detailed()
    assert stride(last) == 4
    assert len(detailed) <= 400
    assert detailed[0] == 1
    assert detailed[-RECENT:] == list(range(last - RECENT + 1, last + 1))
    assert {(number - 1) % 4 for number in detailed[:-RECENT]} == {0}
    assert reader.updates() == reader.history().series("reward")[0] == list(range(1, last + 1))
    assert len(reader.changes()) == 11
    thinned = reader.load(2)
    assert thinned.sampled is None
    assert thinned.finished is not None
    whole = again(2)[-1]
    assert isinstance(whole, Finished)
    assert thinned.finished.metrics == whole.metrics
    assert len(thinned.finished.logprobs) == 0


def test_detail_of_abandoned_branches_is_bounded_too(writer: RunWriter) -> None:
    for _ in range(40):
        for number in (1, 2, 3):
            for record in again(number):
                writer.append(record)
        writer.append(Rewound(update=0, abandoned=3))
    records = [record for _, record in RunReader(writer.path).follow(0)]
    assert sum(isinstance(record, Sampled) for record in records) < RECENT + 8
    assert sum(isinstance(record, Finished) for record in records) == 120
    assert len(RunReader(writer.path).history().abandoned("reward")) == 40


def test_snapshots_are_found_beside_the_file_even_after_a_move(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    run = RunWriter.create(folder / "run.rlplay", synthetic_started())
    for number in (1, 2, 3):
        kept = folder / "run.snapshots" / str(number)
        kept.parent.mkdir(exist_ok=True)
        kept.write_text("weights")
        run.add_snapshot(number, kept, 7)
    (folder / "run.snapshots" / "3").unlink()
    run.drop_snapshot(1)
    assert [snapshot.update for snapshot in run.snapshots()] == [2, 3]
    run.close()
    moved = folder.rename(tmp_path / "there")
    last = RunReader(moved / "run.rlplay").last_snapshot()
    assert last is not None
    assert (last.update, last.path, last.bytes) == (2, moved / "run.snapshots" / "2", 7)


@pytest.mark.parametrize(
    "named", ["secret", "../secret", "/etc/passwd", "run.snapshots/../secret", "run.snapshots/link"]
)
def test_a_run_file_names_no_snapshot_outside_its_own_folder(named: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a key")
    (tmp_path / "run.snapshots").mkdir()
    (tmp_path / "run.snapshots" / "link").symlink_to(tmp_path / "secret")
    writer = RunWriter.create(tmp_path / "run.rlplay", synthetic_started())
    writer.add_snapshot(1, tmp_path / "run.snapshots" / "1", 7)
    writer.close()
    with closing(sqlite3.connect(writer.path)) as database, database:
        database.execute("UPDATE snapshots SET path = ?", (named,))
    assert RunReader(writer.path).snapshots() == []


def test_a_query_in_place_of_a_table_is_refused(tmp_path: Path) -> None:
    path = RunWriter.create(tmp_path / "run.rlplay", synthetic_started()).path
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x AS number FROM c"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE metrics")
        database.execute(f"CREATE VIEW metrics AS {endless}")
    with pytest.raises(RunFileError, match="has other tables than a run file of rlplay; restore it"):
        RunReader(path)


@pytest.mark.parametrize("kind", ["view", "View", "Trigger", "table"])
def test_a_schema_that_is_not_rlplays_is_refused(kind: str, tmp_path: Path) -> None:
    """SQLite takes its kinds in any case, and a column may be computed when it is read."""
    path = RunWriter.create(tmp_path / "run.rlplay", synthetic_started()).path
    sql = {
        "table": "CREATE TABLE labels (data AS (zeroblob(900000000)))",
        "Trigger": "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM records; END",
    }.get(kind, "CREATE VIEW v AS SELECT 1")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA writable_schema = on")
        database.execute("INSERT INTO sqlite_master VALUES (?, 'x', 'x', 0, ?)", (kind, sql))
    with pytest.raises(RunFileError, match=r"other tables than a run file|is not a run file"):
        RunReader(path)


def test_a_journal_beside_a_run_file_deletes_no_file(tmp_path: Path) -> None:
    """A journal may name a super-journal, which SQLite deletes once it has rolled the journal back."""
    path, precious = RunWriter.create(tmp_path / "run.rlplay", synthetic_started()).path, tmp_path / "precious"
    precious.write_text("x")
    name = str(precious).encode()
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 1, 2, 512, 4096)
    record = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name))
    journal = path.with_name("run.rlplay-journal")
    journal.write_bytes(head.ljust(512, b"\0") + record + bytes.fromhex("d9d505f920a163d7"))
    with pytest.raises(RunFileError, match=r"run\.rlplay-journal was not written by rlplay; delete it"):
        RunReader(path)
    journal.unlink()
    journal.symlink_to(precious)
    with pytest.raises(RunFileError, match="was not written by rlplay"):
        RunReader(path)
    assert precious.read_text() == "x"
    journal.unlink()
    for left in (b"", head[:4], head):  # by a program that was killed
        journal.write_bytes(left)
        RunReader(path).close()


@pytest.mark.parametrize("attempt", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 20))])
def test_a_killed_writer_leaves_a_readable_file(tmp_path: Path, attempt: int) -> None:
    path = tmp_path / "run.rlplay"
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.trace.writer", str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    confirmed = 0
    for _ in range(random.Random(attempt).randrange(1, 30)):
        confirmed = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    confirmed = max([confirmed, *map(int, process.stdout.read().split())])
    process.wait()
    with RunReader(path) as reader:
        finished = reader.updates()
        assert finished == list(range(1, len(finished) + 1))
        assert len(finished) >= confirmed
        assert len(reader.load(confirmed).steps) == 2
    resumed = RunWriter.reopen(path)
    resumed.append(Notice(update=confirmed, level="info", text="going on"))
    resumed.close()
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_settings_are_those_that_held_in_an_updates_steps(writer: RunWriter) -> None:
    writer.append(changed(2, 0.1, "update"))
    writer.append(changed(2, 0.3, "after"))
    axes = {"returns": "gae", "baseline": "value"}
    writer.append(Changed(update=4, phase="sample", name="algorithm", value="ppo", previous="grpo", also=axes))
    reader = RunReader(writer.path)
    assert [reader.settings(number)["epsilon"] for number in (1, 2, 3)] == [0.2, 0.1, 0.3]
    assert reader.settings(4) == {**synthetic_started().settings, "epsilon": 0.3, "algorithm": "ppo", **axes}


def test_optimizer_steps_keep_their_index(writer: RunWriter) -> None:
    for record in synthetic_update(1, steps=4):
        writer.append(record)
    rows = sqlite3.connect(writer.path).execute("SELECT step FROM records WHERE kind = 'stepped'").fetchall()
    assert rows == [(0,), (1,), (2,), (3,)]
    assert all(isinstance(step, Stepped) for step in RunReader(writer.path).load(1).steps)
