"""Reads trackio's database of a project, `~/.cache/huggingface/trackio/PROJECT.db`, without trackio.

Table `metrics` (trackio/sqlite_storage.py, 0.43): run_id, run_name, step, metrics (JSON; NaN and infinities as texts);
`configs`: run_id, config (JSON). Before run_id there was run_name alone. `step` counts the calls of `trackio.log`.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlplay.foreign.curve_files.rows import Clock, Row, model_in, parsed
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.text import quote

_LARGEST = 2**24
"""Bytes of a value in the database."""
_COMPUTED = re.compile(r"\bgenerated\b|\bas\s*\(", re.IGNORECASE)


class TrackioRun:
    """One run in the database of a project."""

    source = "trackio"
    goes_back = True

    def __init__(self, database: Path, name: str) -> None:
        """The run `name` of a database, by `runs_in`; "" if it has only one. Raises ForeignRunError."""
        runs = runs_in(database)
        if not name and len(runs) == 1:
            name = next(iter(runs))
        if name not in runs:
            raise ForeignRunError(f"{database} has no run {quote(name)}; it has {', '.join(map(quote, runs))}")
        self.path, self._database, self._name = database / name, database, name
        self._run, self._column = runs[name]
        self._read, self._clock = 0, Clock()

    def about(self) -> dict[str, Any]:
        """The configuration of the run and its name."""
        config: Any = {}
        with _opened(self._database) as db:
            if "configs" in _tables(db):
                found = db.execute(f"SELECT config FROM configs WHERE {self._column} = ?", (self._run,)).fetchone()
                with contextlib.suppress(ValueError, TypeError):
                    config = parsed(found[0]) if found else {}
        config = config if isinstance(config, dict) else {}
        title = f"{self._database.stem} · {self._name}"
        return {"settings": config, "model": model_in(config), "title": title, "run_id": self._run}

    def fresh(self) -> list[Row]:
        """What was logged since the last call."""
        query = f"SELECT id, step, metrics FROM metrics WHERE {self._column} = ? AND id > ? ORDER BY id"
        found: list[Row] = []
        with _opened(self._database) as db:
            for number, call, text in db.execute(query, (self._run, self._read)):
                try:
                    logged = parsed(text)
                except (ValueError, TypeError):
                    raise ForeignRunError(f"{self._database} is damaged (row {number} of metrics)") from None
                if isinstance(logged, dict):
                    found += self._clock.row(logged, call)
                self._read = number
        return found


def is_database(path: Path) -> bool:
    """Whether a file is a database with the table of trackio."""
    try:
        with _opened(path) as db:
            return "metrics" in _tables(db)
    except ForeignRunError:
        return False


def runs_in(database: Path) -> dict[str, tuple[str, str]]:
    """The runs of a project in the order of their first rows: by name, how the table knows it and in which column.

    A second run of the same name is named with its id. Raises ForeignRunError if the database cannot be read.
    """
    with _opened(database) as db:
        column = "run_id" if "run_id" in _tables(db).get("metrics", set()) else "run_name"
        query = f"SELECT {column}, run_name FROM metrics GROUP BY {column} ORDER BY min(id)"
        found: dict[str, tuple[str, str]] = {}
        for run, name in db.execute(query):
            found[f"{name}-{run}" if str(name) in found else str(name)] = str(run), column
    if not found:
        raise ForeignRunError(f"{database} holds no run yet; its trainer writes the first rows when it logs")
    return found


def _tables(db: sqlite3.Connection) -> dict[str, set[str]]:
    """The columns of each plain table of trackio's: a stranger's could be a view, which computes what it gives."""
    tables = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name IN ('metrics', 'configs')")
    plain = [name for name, sql in tables.fetchall() if not _COMPUTED.search(sql or "")]
    found = {name: {row[1] for row in db.execute(f"PRAGMA table_info({name})")} for name in plain}
    needed = {"metrics": {"run_name", "step", "metrics"}, "configs": {"run_name", "config"}}
    return {name: columns for name, columns in found.items() if needed[name] <= columns}


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database, to read. Raises ForeignRunError if it cannot be read."""
    try:
        with contextlib.closing(_connected(path)) as db:
            yield db
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise ForeignRunError(f"{path} cannot be read as a database of trackio ({error})") from None


def _connected(path: Path) -> sqlite3.Connection:
    for mode in ("ro", "ro&immutable=1"):  # a read-only folder cannot hold the write-ahead log
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=10)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            db.close()
            continue
        return db
    raise sqlite3.OperationalError("it cannot be opened")
