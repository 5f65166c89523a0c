"""The layout of a run file: an SQLite database in WAL mode, one writer and any number of readers.

Numbers are queryable with any SQLite tool (`SELECT number, value FROM metrics WHERE name = 'reward' AND branch = 0`);
records are zlib-compressed msgpack. `branch` is 0 for rows that are still part of the run; branches that a rewind
discarded count from 1.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import uuid
import zlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from rlplay.trace.clock import FIRST, LAST
from rlplay.trace.codec import RECORDS
from rlplay.trace.inflate import Budget
from rlplay.trace.records import AnyRecord, Finished, WithMetrics
from rlplay.trace.sound import check_record

FORMAT = 1
APPLICATION = 0x524C7079  # "RLpy": identifies run files in SQLite's application_id and for `file`
BRANCHED = "branched"  # meta: the update up to which a run was copied from another
ORIGIN, PLACE = "origin", "place"  # meta: what the run is a copy of, and up to where that was read
DETAIL = ("sampled", "scored", "credited", "searched", "stepped")  # the kinds of records that thinning removes
SET_BETWEEN = ("changed", "staged", "withheld")  # the kinds that are set between updates, for the next one on

SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
BEGIN;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE records (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    number INTEGER NOT NULL,             -- update
    kind TEXT NOT NULL,                  -- sampled, scored, credited, searched, stepped, finished, changed…
    step INTEGER,                        -- optimizer step of a stepped record
    phase TEXT,                          -- from which on a changed setting or a stage holds
    branch INTEGER NOT NULL DEFAULT 0,
    data BLOB NOT NULL
);
CREATE INDEX records_by_number ON records (number);
CREATE INDEX records_by_kind ON records (kind, branch, number);
CREATE TABLE metrics (
    branch INTEGER NOT NULL DEFAULT 0,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL,                          -- NULL is NaN
    PRIMARY KEY (branch, number, name)
) WITHOUT ROWID;
CREATE TABLE snapshots (
    branch INTEGER NOT NULL DEFAULT 0,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,                  -- relative to the folder of this file
    bytes INTEGER NOT NULL,
    PRIMARY KEY (branch, number)
) WITHOUT ROWID;
COMMIT;
"""


NUMBERED = "typeof(number) = 'integer' AND number BETWEEN 0 AND 2147483647"
"""The condition that a row is of an update; SQLite lets a damaged file have any type in any column."""
POINT = f"{NUMBERED} AND typeof(name) = 'text' AND typeof(value) IN ('real', 'integer', 'null')"
"""The condition that a row of the table of metrics is sound."""
METRIC = f"{POINT} AND name NOT IN {(FIRST, LAST)}"
"""The condition that it is the value of a metric, and not the number of a step."""


class RunFileError(ValueError):
    """A run file that rlplay cannot read or write; the message is one line: what, where, what to do."""


class Snapshot(msgspec.Struct, frozen=True):
    """The state after update `update`, kept at `path` (absolute), `bytes` large."""

    update: int
    path: Path
    bytes: int


def snapshots_folder(run: Path) -> Path:
    """The folder with the snapshots of the run file `run`."""
    return run.with_name(run.name.removesuffix(".rlplay") + ".snapshots")


def draft_of(path: Path) -> Path:
    """A name beside the run file `path` that no other program takes, until the file is complete."""
    return path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}.new")


def publish(draft: Path, path: Path) -> None:
    """Give the complete file its name, unless another program was faster: then RunFileError."""
    try:
        os.link(draft, path)
    except FileExistsError:
        draft.unlink()
        raise existing(path) from None
    except OSError:  # this file system has no links
        os.replace(draft, path)
    else:
        draft.unlink()


def existing(path: Path) -> RunFileError:
    """The error of a new run that would replace another."""
    return RunFileError(f"{path} exists already; resume it or choose another path")


def pack(record: AnyRecord) -> bytes:
    """A record as it is stored; RunFileError if it is larger than what can be read again."""
    content = RECORDS.encode(record)
    if len(content) > _LARGEST:
        raise RunFileError(
            f"a record of update {record.update} takes {len(content) // 2**20} MiB, more than {_LARGEST // 2**20}; "
            "lower candidates, num_prompts or max_completion_length"
        )
    return zlib.compress(content, 1)


def unpack(data: bytes, path: Path, number: int, budget: Budget | None = None) -> AnyRecord:
    """The record of update `number` in stored bytes, checked; RunFileError if they are damaged.

    `budget` is that of several records which are read together.
    """
    try:
        record = RECORDS.decode((budget or Budget(0)).inflated(data, _LARGEST))
        if record.update != number:
            raise ValueError(f"a record of update {record.update} is among its own")
        check_record(record)
    except _DAMAGE as error:
        raise damaged(path, number, error) from None
    return record


_DAMAGE = (zlib.error, msgspec.MsgspecError, ValueError, LookupError, TypeError, OverflowError, RecursionError)
_LARGEST = 2**28
"""Bytes of a record; a batch of 64,000 tokens with ten candidates each has 9 million."""


def damaged(path: Path, number: int, error: Exception) -> RunFileError:
    """The error of an update that cannot be read."""
    what = " ".join(str(error).split())[:200]
    return RunFileError(f"{path}: update {number} is damaged ({what}); look at another update")


def without_detail(finished: Finished) -> Finished:
    """The record with its metrics and timings but without token arrays, for updates whose detail is thinned out."""
    none = np.zeros(0, dtype=np.float32)
    return msgspec.structs.replace(
        finished, rows=np.zeros(0, dtype=np.int32), logprobs=none, top_logprobs=none, favourite_ids=None,
        favourite_logprobs=None, pieces={},
    )  # fmt: skip


def points_of(record: AnyRecord) -> list[tuple[int, str, float]]:
    """The rows of the table of metrics that a record makes: update, name, value."""
    points = [*record.metrics.items()] if isinstance(record, WithMetrics) else []
    if isinstance(record, Finished) and record.trainer_steps is not None:
        points += zip((FIRST, LAST), record.trainer_steps, strict=True)
    return [(record.update, name, value) for name, value in points]


def kind(record: AnyRecord) -> str:
    """The name under which a record is stored: its class, in lower case."""
    return type(record).__name__.lower()


@contextlib.contextmanager
def explained(path: Path, action: str) -> Iterator[None]:
    """Turns SQLite's errors into RunFileError; `action` is "read" or "written"."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # SQLite quotes a damaged schema byte by byte
        remedy = "check the disk's free space and permissions" if action == "written" else "restore it from a copy"
        raise RunFileError(f"{path} cannot be {action} ({error}); {remedy}") from error


def connect(path: Path, reading: bool = False) -> sqlite3.Connection:
    """Open the run file at `path`. Raises RunFileError if it is missing, foreign, damaged or of a newer format."""
    if not path.is_file():
        raise RunFileError(f"no run file at {path}; `rlplay runs` lists the recorded runs")
    _check_journal(path)
    try:
        # Readers also open it for writing, so that the last one to close removes the write-ahead log.
        db = _opened(path, "mode=rw")
    except sqlite3.OperationalError as error:
        with explained(path, "read" if reading else "written"):
            if not reading:
                raise error
            # A read-only folder cannot hold the log, but the file itself can still be read.
            db = _opened(path, "mode=ro&immutable=1")
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise RunFileError(f"{path} is not a run file ({error}); `rlplay runs` lists the recorded runs") from None
    if reading:
        db.execute("PRAGMA query_only = ON")
    return db


_TABLES = "SELECT type, name, tbl_name, sql FROM sqlite_master"


@lru_cache(1)
def _own_tables() -> set[tuple[str, ...]]:
    """What a run file's schema holds. A stranger's could hold triggers, views or computed columns."""
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(SCHEMA)
        return set(db.execute(_TABLES))


def _check_journal(path: Path) -> None:
    """Raises RunFileError if a journal beside the run file names another file, which SQLite would delete.

    A journal of rlplay's own names none. It is there while another program creates the run, or where one was killed.
    """
    journal = path.with_name(f"{path.name}-journal")
    try:
        kind = journal.lstat().st_mode
        foreign = not stat.S_ISREG(kind) or journal.read_bytes().endswith(_NAMES_ANOTHER)
    except FileNotFoundError:
        return
    if foreign:
        raise RunFileError(f"{journal} was not written by rlplay; delete it")


_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names a super-journal: https://sqlite.org/fileformat2.html#the_rollback_journal"""


def _opened(path: Path, query: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{query}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
    try:
        application = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION:
            raise RunFileError(f"{path} is not a run file of rlplay; `rlplay runs` lists the recorded runs")
        if version > FORMAT:
            raise RunFileError(f"{path} has format {version}, this rlplay reads up to {FORMAT}; upgrade rlplay")
        db.execute("SELECT value FROM meta WHERE key = 'run_id'").fetchone()
        if not set(db.execute(_TABLES)) <= _own_tables():
            raise RunFileError(f"{path} has other tables than a run file of rlplay; restore it from a copy")
    except BaseException:
        db.close()
        raise
    return db


def snapshots_in(db: sqlite3.Connection, path: Path) -> list[Snapshot]:
    """The snapshots of the live branch that the run file `path` lists, by update, also those that are gone."""
    sound = f"{NUMBERED} AND typeof(path) = 'text' AND typeof(bytes) = 'integer'"
    rows = db.execute(f"SELECT number, path, bytes FROM snapshots WHERE branch = 0 AND {sound} ORDER BY 1").fetchall()
    # Of a path only the name counts: a stranger's run file may name any file of this machine.
    folder = snapshots_folder(path)
    return [Snapshot(number, folder / Path(relative).name, size) for number, relative, size in rows]
