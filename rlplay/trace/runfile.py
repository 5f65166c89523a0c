"""One file per run: the engine writes it with one commit per record, and anyone may read it at any time.

A record is on disk when `append` returns, so a killed engine loses nothing that it has reported.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rlplay.trace.deleted import write_again
from rlplay.trace.history import History
from rlplay.trace.inflate import Budget
from rlplay.trace.records import (
    AnyRecord,
    Evaluated,
    Finished,
    Record,
    Rewound,
    Sampled,
    SettingsChange,
    Started,
    Stepped,
)
from rlplay.trace.runfile_format import (
    BRANCHED,
    DETAIL,
    METRIC,
    NUMBERED,
    PLACE,
    POINT,
    SCHEMA,
    SET_BETWEEN,
    RunFileError,
    Snapshot,
    connect,
    damaged,
    draft_of,
    existing,
    explained,
    kind,
    pack,
    points_of,
    publish,
    snapshots_folder,
    snapshots_in,
    unpack,
)
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trace.sound import check_update
from rlplay.trace.thinning import thin
from rlplay.trace.update import Update

__all__ = ["RunFileError", "RunReader", "RunWriter", "Snapshot"]


class RunWriter:
    """The only writer of a run file. Methods raise RunFileError if the disk fails."""

    def __init__(self, path: str | Path) -> None:
        """Open an existing run file; use `create` or `reopen`."""
        self.path = Path(path)
        self._db = self._connected()
        with explained(self.path, "written"):
            self._branches: int = self._db.execute("SELECT coalesce(max(branch), 0) FROM records").fetchone()[0]

    def _connected(self) -> sqlite3.Connection:
        db = connect(self.path)
        with explained(self.path, "written"):
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
        return db

    @classmethod
    def create(cls, path: str | Path, started: Started, **notes: str) -> RunWriter:
        """A new run file that begins with `started`, and texts about it; RunFileError if `path` exists already."""
        path = Path(path)
        if path.exists():
            raise existing(path)
        draft = draft_of(path)
        meta = {
            "run_id": started.run_id,
            "created": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
            "scenario": started.scenario,
            "scenario_text": started.scenario_text,
            "title": started.title,
            **notes,
        }
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            db = sqlite3.connect(draft)
            db.executescript(SCHEMA)
            with db:
                db.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
                _insert(db, started)
            db.close()
            publish(draft, path)
        except (OSError, sqlite3.Error) as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or error
            remedy = "choose a folder with free space and write permission by RLPLAY_HOME or --out"
            raise RunFileError(f"{path} cannot be created ({reason}); {remedy}") from error
        return cls(path)

    @classmethod
    def reopen(cls, path: str | Path) -> RunWriter:
        """Continue an existing run; append a `Rewound` if it continues from an earlier update than it had reached."""
        return cls(path)

    def append(self, record: AnyRecord) -> None:
        """Store `record` and commit; ignores a `Sampled` that is not done."""
        with self._transaction():
            self._append(record)

    def append_copied(self, records: Iterable[AnyRecord], place: str, before: str) -> bool:
        """Store the records of a run that is copied from elsewhere, and up to where it was read, in one commit.

        False, and nothing is stored, if the file no longer says `before`: another program has read on meanwhile.
        """
        with self._transaction():
            if (self.note(PLACE) or "") != before:
                return False
            for record in records:
                self._append(record)
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (PLACE, place))
        return True

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self.path.exists():
            write_again(self._db, self.path)
            self._db = self._connected()
        with explained(self.path, "written"):
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield

    def _append(self, record: AnyRecord) -> None:
        if isinstance(record, Sampled) and not record.done:
            return
        if isinstance(record, Rewound):
            # What was set between updates belongs to the state that the run goes back to.
            later = {"metrics": "number > :update", "snapshots": "number > :update"}
            between = f"kind IN {SET_BETWEEN} AND phase = 'sample' AND number = :update + 1"
            self._abandon(record.update, {"records": f"number > :update AND NOT ({between})", **later})
        if isinstance(record, Sampled):  # replaces an update that was discarded or that a crash cut short
            self._abandon(record.update, {"records": f"number >= :update AND kind IN {DETAIL}"})
        _insert(self._db, record)
        points = "INSERT OR REPLACE INTO metrics (number, name, value) VALUES (?, ?, ?)"
        self._db.executemany(points, points_of(record))
        if isinstance(record, Finished):
            thin(self._db, self.path, record.update)

    def add_snapshot(self, update: int, path: Path, size: int) -> None:
        """Record that the state after `update` is at `path` and takes `size` bytes."""
        relative = os.path.relpath(path, self.path.parent)
        with explained(self.path, "written"):
            self._db.execute(
                "INSERT OR REPLACE INTO snapshots (number, path, bytes) VALUES (?, ?, ?)", (update, relative, size)
            )

    def drop_snapshot(self, update: int) -> None:
        """Forget the live branch's snapshot of `update`; the caller deletes the file."""
        with explained(self.path, "written"):
            self._db.execute("DELETE FROM snapshots WHERE branch = 0 AND number = ?", (update,))

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of the live branch, by update."""
        with explained(self.path, "read"):
            return snapshots_in(self._db, self.path)

    def note(self, key: str) -> str | None:
        """A text about the run, stored under `key` when it was created or since."""
        return _note(self._db, self.path, key)

    def close(self) -> None:
        """Merge the write-ahead log into the file and close it; without this, nothing is lost."""
        self._db.close()

    def _abandon(self, update: int, which: dict[str, str]) -> None:
        moved = 0
        for table, condition in which.items():
            query = f"UPDATE {table} SET branch = :branch WHERE branch = 0 AND {condition}"
            moved += self._db.execute(query, {"branch": self._branches + 1, "update": update}).rowcount
        self._branches += moved > 0


class RunReader:
    """Reads a run file, also while the engine writes it: every call sees what is committed by then.

    Methods raise RunFileError if the file is damaged. Usable from any thread.
    """

    def __init__(self, path: str | Path) -> None:
        """Open `path`; RunFileError if it is missing, foreign, damaged or of a newer format."""
        self.path = Path(path)
        self._db = connect(self.path, reading=True)
        self._file = os.stat(self.path).st_ino
        first = next(self._records("kind = 'started' ORDER BY id LIMIT 1"), None)
        if first is None or not isinstance(first[1], Started):
            raise RunFileError(f"{path} has no beginning; restore it from a copy")
        self.started: Started = first[1]

    def note(self, key: str) -> str | None:
        """A text about the run, stored under `key`."""
        return _note(self._db, self.path, key)

    @property
    def branched(self) -> int:
        """The update up to which this run is a copy of another; 0 if it is not a branch."""
        known = self.note(BRANCHED) or ""
        return int(known) if known.isdecimal() and len(known) < 10 else 0

    @property
    def began(self) -> datetime.datetime:
        """When the run file was created, with the time zone."""
        try:
            return datetime.datetime.fromisoformat(self.note("created") or "")
        except ValueError:
            raise RunFileError(f"{self.path} does not say when it was created; restore it from a copy") from None

    def is_replaced(self) -> bool:
        """Whether the path has another file now: a live run writes one that was deleted again."""
        try:
            return os.stat(self.path).st_ino != self._file
        except FileNotFoundError:
            return False

    def updates(self) -> list[int]:
        """The finished updates of the live branch, ascending."""
        return [row[0] for row in self._rows(_NUMBERS.format(kind="finished"))]

    def detailed(self) -> list[int]:
        """The finished updates of the live branch that still have their tokens, ascending."""
        sampled = {row[0] for row in self._rows(_NUMBERS.format(kind="sampled"))}
        return [number for number in self.updates() if number in sampled]

    def load(self, number: int) -> Update:
        """Update `number` of the live branch, also an unfinished one; thinned ones have only `finished`.

        Raises RunFileError if the run has no such update.
        """
        update = Update(number)
        found = False
        for _, record in self._records("number = ? AND branch = 0 ORDER BY id", number):
            update.add(record)
            found = found or kind(record) in (*DETAIL, "finished")
        if not found:
            known = self.updates()
            have = f"it has updates {known[0]} to {known[-1]}" if known else "it has no finished update yet"
            raise RunFileError(f"{self.path} has no update {number}; {have}")
        try:
            check_update(update)
        except ValueError as error:
            raise damaged(self.path, number, error) from None
        return update

    def record_ids(self, number: int) -> list[int]:
        """The ids of the records that `load` puts together; they are others as soon as the update has changed."""
        return [row[0] for row in self._rows("SELECT id FROM records WHERE number = ? AND branch = 0", number)]

    def held_out(self, number: int) -> Evaluated | None:
        """The newest held-out answers of the live branch up to after update `number`; None if there are none."""
        where = "kind = 'evaluated' AND branch = 0 AND number <= ? ORDER BY number DESC, id DESC LIMIT 1"
        found = (record for _, record in self._records(where, number))
        return next((record for record in found if isinstance(record, Evaluated) and record.prompts), None)

    def history(self) -> History:
        """Every metric and mark so far, abandoned branches included."""
        points = self._rows(f"SELECT branch, name, number, value FROM metrics WHERE {POINT} ORDER BY branch, number")
        marks = self._records(f"kind IN {(*SET_BETWEEN, 'rewound')} AND branch = 0 ORDER BY id")
        return History.of(points, (record for _, record in marks))

    def metrics(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Every metric of every update of the live branch, by name; NaN where the value is not a number.

        Update 0 has the held-out numbers from before training.
        """
        for (number,) in self._rows(f"SELECT DISTINCT number FROM metrics WHERE branch = 0 AND {METRIC} ORDER BY 1"):
            pairs = self._rows(f"SELECT name, value FROM metrics WHERE branch = 0 AND number = ? AND {METRIC}", number)
            yield number, {name: math.nan if value is None else value for name, value in pairs}

    def seconds(self, number: int) -> float:
        """How long update `number` of the live branch took, its evaluation included."""
        found = self._records("number = ? AND branch = 0 AND kind IN ('finished', 'evaluated')", number)
        return sum(record.seconds for _, record in found if isinstance(record, Finished | Evaluated))

    def latest(self, name: str) -> float | None:
        """The newest value of a metric on the live branch; None if there is none."""
        query = f"SELECT value FROM metrics WHERE branch = 0 AND name = ? AND {POINT} ORDER BY number DESC LIMIT 1"
        return next((value for (value,) in self._rows(query, name)), None)

    def changes(self) -> list[SettingsChange]:
        """The live branch's changes of settings in order, including those by a new stage."""
        found = self._records("kind IN ('changed', 'staged') AND branch = 0 ORDER BY id")
        return [record for _, record in found if isinstance(record, SettingsChange)]

    def every(self, wanted: type[Record]) -> list[Any]:
        """The live branch's records of a kind, in order."""
        found = self._records("kind = ? AND branch = 0 ORDER BY id", wanted.__name__.lower())
        return [record for _, record in found if isinstance(record, wanted)]

    def timeline(self) -> SettingsTimeline:
        """The settings along the live branch."""
        return SettingsTimeline(self.started.settings, self.changes())

    def settings(self, number: int) -> dict[str, Any]:
        """The settings that held in the optimizer steps of update `number`."""
        return self.timeline().at(number)

    def events(self, after_id: int = 0) -> list[tuple[str, int, AnyRecord | None]]:
        """What happened after a record, in order, discarded updates included: the kind of each record and its update.

        What the user did comes with its record: a changed setting, a label, credit taken away, a look, a rewind.
        """
        by_user = "CASE WHEN kind IN ('changed', 'labelled', 'withheld', 'looked', 'rewound') THEN data END"
        where = f"{NUMBERED} AND id > ? ORDER BY id"
        rows = self._rows(f"SELECT kind, number, {by_user} FROM records WHERE {where}", after_id)
        budget = Budget.of(data for *_, data in rows)
        return [(name, number, data and unpack(data, self.path, number, budget)) for name, number, data in rows]

    def snapshots(self) -> list[Snapshot]:
        """The snapshots of the live branch that are still on disk, by update."""
        with explained(self.path, "read"):
            known = [] if snapshots_folder(self.path).is_symlink() else snapshots_in(self._db, self.path)
        return [snapshot for snapshot in known if snapshot.path.is_file() and not snapshot.path.is_symlink()]

    def last_snapshot(self) -> Snapshot | None:
        """The newest snapshot; None if there is none."""
        return next(reversed(self.snapshots()), None)

    def last_id(self) -> int:
        """The id of the newest record, for `follow`."""
        return int(self._rows("SELECT max(id) FROM records")[0][0] or 0)

    def follow(self, after_id: int) -> list[tuple[int, AnyRecord]]:
        """The records stored since the one with id `after_id`, with their ids; 0 gives all."""
        return list(self._records("id > ? ORDER BY id", after_id))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> RunReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with explained(self.path, "read"):
            return self._db.execute(query, values).fetchall()

    def _records(self, where: str, *values: Any) -> Iterator[tuple[int, AnyRecord]]:
        rows = self._rows(f"SELECT id, number, data FROM records WHERE {where}", *values)
        budget = Budget.of(data for *_, data in rows)
        for key, number, data in rows:
            yield key, unpack(data, self.path, number, budget)


_NUMBERS = f"SELECT DISTINCT number FROM records WHERE kind = '{{kind}}' AND branch = 0 AND {NUMBERED} ORDER BY number"


def _insert(db: sqlite3.Connection, record: AnyRecord) -> None:
    step = record.step if isinstance(record, Stepped) else None
    phase = getattr(record, "phase", None) if kind(record) in SET_BETWEEN else None
    row = (record.update, kind(record), step, phase, pack(record))
    db.execute("INSERT INTO records (number, kind, step, phase, data) VALUES (?, ?, ?, ?, ?)", row)


def _note(db: sqlite3.Connection, path: Path, key: str) -> str | None:
    with explained(path, "read"):
        found = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if found is None else str(found[0])
