"""Copies a run up to an update into a new run file, with the snapshots to continue from.

The copy appears when it is complete. It can be replayed, resumed and exported like any other run, also after its parent
is deleted.
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

from rlplay.trace.records import Staged, Started
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import (
    BRANCHED,
    SET_BETWEEN,
    RunFileError,
    Snapshot,
    connect,
    draft_of,
    existing,
    explained,
    publish,
    snapshots_folder,
)

Row = tuple[Any, ...]

_UNTIL = "branch = 0 AND number <= :update"
# What was set at the end of the update is part of the state after it; an earlier rewind to there is not.
_RECORDS = f"""kind != 'started' AND NOT (kind = 'rewound' AND number = :update) AND ({_UNTIL}
    OR branch = 0 AND kind IN {SET_BETWEEN} AND phase = 'sample' AND number = :update + 1)"""
_TABLES = (
    ("records", "number, kind, step, phase, data", f"{_RECORDS} ORDER BY id"),
    ("metrics", "number, name, value", _UNTIL),
)


class Stopped(Exception):
    """The copy was cancelled and removed."""


def branch(
    parent: Path, update: int, path: Path, progress: Callable[[float], bool] = lambda _share: True,
    begun: Started | None = None,
) -> None:  # fmt: skip
    """Write the run `parent` up to the end of `update` to the new file `path`; the parent may still be growing.

    The copy begins as the parent did, or as `begun` says. `progress` is called with the share of the records copied so
    far, from 0 to 1; if it returns False, this raises Stopped.
    Raises RunFileError if the run has not finished that update, or if a file cannot be read or written.
    """
    with closing(RunReader(parent)) as reader:
        finished = reader.updates()
        if update and update not in finished:
            have = f"it has reached update {finished[-1]}" if finished else "it has no finished update yet"
            raise RunFileError(f"{parent} cannot be branched at update {update}; {have}")
        started = begun or msgspec.structs.replace(reader.started, run_id=uuid.uuid4().hex)
        if path.exists():
            raise existing(path)
        draft, snapshots = draft_of(path), snapshots_folder(path)
        try:
            with closing(RunWriter.create(draft, started)) as writer, explained(path, "written"):
                _copy(parent, update, draft, progress)
                _copy_snapshots(reader, update, writer, snapshots)
            publish(draft, path)
        except (RunFileError, Stopped):
            shutil.rmtree(snapshots, ignore_errors=True)
            for ending in ("", "-wal", "-shm"):
                draft.with_name(draft.name + ending).unlink(missing_ok=True)
            raise


def _copy_snapshots(reader: RunReader, update: int, writer: RunWriter, folder: Path) -> None:
    """Copy the newest snapshot up to the end of `update`, and those from the start of each stage."""
    starts = {record.update - 1 for record in reader.changes() if isinstance(record, Staged)}
    known = [each for each in reader.snapshots() if each.update <= update]
    for snapshot in known:
        if snapshot.update in starts:
            copy_snapshot(snapshot, writer, folder)
    next((each for each in reversed(known) if each.update not in starts and copy_snapshot(each, writer, folder)), None)


def _copy(parent: Path, update: int, path: Path, progress: Callable[[float], bool]) -> None:
    with (
        closing(connect(parent, reading=True)) as old,
        closing(connect(path)) as new,
        new,
    ):
        old.execute("BEGIN")  # a consistent view of all tables
        new.execute("BEGIN IMMEDIATE")
        at = {"update": update}
        counts = [old.execute(f"SELECT COUNT(*) FROM {table} WHERE {which}", at) for table, _, which in _TABLES]
        total = sum(count.fetchone()[0] for count in counts)
        shares = (done / total for done in range(total))
        for table, columns, which in _TABLES:
            rows = old.execute(f"SELECT {columns} FROM {table} WHERE {which}", at)
            places = ", ".join("?" for _ in columns.split(","))
            new.executemany(
                f"INSERT INTO {table} ({columns}) VALUES ({places})", _with_progress(rows, shares, progress)
            )
        new.execute("INSERT INTO meta VALUES (?, ?)", (BRANCHED, str(update)))


def _with_progress(rows: Iterable[Row], shares: Iterator[float], progress: Callable[[float], bool]) -> Iterator[Row]:
    for row in rows:
        if not progress(next(shares)):
            raise Stopped
        yield row


def copy_snapshot(snapshot: Snapshot, writer: RunWriter, folder: Path) -> bool:
    """Link or copy a snapshot to the new run; False if the parent has deleted it in the meantime."""
    copy = folder / snapshot.path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(snapshot.path, copy)  # snapshots never change, so both runs can share the bytes
        except FileNotFoundError:
            return False
        except OSError:
            shutil.copyfile(snapshot.path, copy)
    except OSError as error:
        raise RunFileError(f"{copy} cannot be written ({error}); free some disk space") from error
    writer.add_snapshot(snapshot.update, copy, snapshot.bytes)
    return True
