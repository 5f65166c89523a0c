"""A run file that somebody deletes while it is written: the open connection still has all that was in it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rlplay.trace.runfile_format import draft_of, explained, publish


def write_again(db: sqlite3.Connection, path: Path) -> None:
    """Write what `db` has to `path`, where its file was, and close it. RunFileError if it cannot be written."""
    draft = draft_of(path)
    with explained(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        db.execute("VACUUM INTO ?", (str(draft),))
        db.close()
        for log in ("-wal", "-shm"):  # SQLite would take those of the deleted file for the new one's
            path.with_name(path.name + log).unlink(missing_ok=True)
        publish(draft, path)
