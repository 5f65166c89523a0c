"""A run that begins as another one did: everything up to an update in a file of its own, with the state to go on from.

What is copied is a complete run. It is replayed, resumed and exported like any other, also once its parent is gone.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from rlplay.trace.records import Staged
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import BRANCHED, RunFileError, Snapshot, connect, explained, snapshots_folder

Row = tuple[Any, ...]

_UNTIL = "branch = 0 AND number <= :update"
# A knob turned or a stage begun at the end of the update is part of the state it left; that the run once went back
# there is not.
_RECORDS = f"""kind != 'started' AND NOT (kind = 'rewound' AND number = :update) AND ({_UNTIL}
    OR branch = 0 AND kind IN ('changed', 'staged') AND phase = 'sample' AND number = :update + 1)"""
_TABLES = (
    ("records", "number, kind, step, phase, data", f"{_RECORDS} ORDER BY id"),
    ("metrics", "number, name, value", _UNTIL),
)


class Stopped(Exception):
    """The copy was given up halfway, and nothing is left of it."""


def branch(parent: Path, update: int, path: Path, going: Callable[[float], bool] = lambda _share: True) -> None:
    """Write the run `parent` up to the end of `update` to the new file `path`; the parent may still be growing.

    `going` is told again and again which share of the records is copied, from 0 to 1; False from it raises Stopped.
    Raises RunFileError if the run has not finished that update, or if a file cannot be read or written.
    """
    with closing(RunReader(parent)) as reader:
        finished = reader.updates()
        if update and update not in finished:
            have = f"it has reached update {finished[-1]}" if finished else "it has no finished update yet"
            raise RunFileError(f"{parent} cannot be branched at update {update}; {have}")
        started = msgspec.structs.replace(reader.started, run_id=uuid.uuid4().hex)
        writer = RunWriter.create(path, started)
        try:
            with closing(writer):
                _copy(parent, update, path, going)
                _take_along(reader, update, writer)
        except (RunFileError, Stopped):
            shutil.rmtree(snapshots_folder(path), ignore_errors=True)
            for ending in ("", "-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            raise


def _take_along(reader: RunReader, update: int, writer: RunWriter) -> None:
    """The newest snapshot up to the end of `update`, and those that a stage began with."""
    starts = {record.update - 1 for record in reader.changes() if isinstance(record, Staged)}
    known = [each for each in reader.snapshots() if each.update <= update]
    for snapshot in known:
        if snapshot.update in starts:
            _take(snapshot, writer)
    next((each for each in reversed(known) if each.update not in starts and _take(each, writer)), None)


def _copy(parent: Path, update: int, path: Path, going: Callable[[float], bool]) -> None:
    with (
        closing(connect(parent, reading=True)) as old,
        closing(connect(path)) as new,
        explained(path, "written"),
        new,
    ):
        old.execute("BEGIN")  # all tables as of one moment
        new.execute("BEGIN IMMEDIATE")
        at = {"update": update}
        counts = [old.execute(f"SELECT COUNT(*) FROM {table} WHERE {which}", at) for table, _, which in _TABLES]
        total = sum(count.fetchone()[0] for count in counts)
        shares = (done / total for done in range(total))
        for table, columns, which in _TABLES:
            rows = old.execute(f"SELECT {columns} FROM {table} WHERE {which}", at)
            places = ", ".join("?" for _ in columns.split(","))
            new.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", _watched(rows, shares, going))
        new.execute("INSERT INTO meta VALUES (?, ?)", (BRANCHED, str(update)))


def _watched(rows: Iterable[Row], shares: Iterator[float], going: Callable[[float], bool]) -> Iterator[Row]:
    for row in rows:
        if not going(next(shares)):
            raise Stopped
        yield row


def _take(snapshot: Snapshot, writer: RunWriter) -> bool:
    """Have the snapshot beside the new run too; False if its owner has deleted it in the meantime."""
    copy = snapshots_folder(writer.path) / snapshot.path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(snapshot.path, copy)  # a snapshot is never written to again: both runs can own the same bytes
        except FileNotFoundError:
            return False
        except OSError:
            shutil.copyfile(snapshot.path, copy)
    except OSError as error:
        raise RunFileError(f"{copy} cannot be written ({error}); free some disk space") from error
    writer.add_snapshot(snapshot.update, copy, snapshot.bytes)
    return True
