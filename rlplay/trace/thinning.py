"""Which older updates of a long run keep the detail of their tokens."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rlplay.trace.records import Finished
from rlplay.trace.runfile_format import DETAIL, pack, unpack, without_detail

RECENT = 50
"""Updates that always keep it, on the live branch and on abandoned ones."""
_OLDER = 350
"""About this many older ones keep it, too."""
_AT_ONCE = 4


def stride(finished: int) -> int:
    """The distance between older updates that keep their detail, after `finished` updates: 1, 2, 4…"""
    step = 1
    while (finished - RECENT) / step > _OLDER:
        step *= 2
    return step


def thin(db: sqlite3.Connection, path: Path, finished: int) -> None:
    """Remove the detail of a few older updates from the run file `path`, after `finished` updates.

    Raises RunFileError if one of them is damaged.
    """
    query = "SELECT DISTINCT branch, number FROM records WHERE kind = 'sampled' AND "
    abandoned = query + "branch > 0 ORDER BY branch DESC, number DESC LIMIT ? OFFSET ?"
    stale = db.execute(abandoned, (_AT_ONCE, RECENT)).fetchall()
    if (every := stride(finished)) > 1:
        older = query + "branch = 0 AND number <= ? AND (number - 1) % ? LIMIT ?"
        stale += db.execute(older, (finished - RECENT, every, _AT_ONCE)).fetchall()
    for place in stale:
        this = "branch = ? AND number = ?"
        db.execute(f"DELETE FROM records WHERE {this} AND kind IN {DETAIL}", place)
        whole = f"SELECT id, data FROM records WHERE {this} AND kind = 'finished'"
        for key, data in db.execute(whole, place).fetchall():
            record = unpack(data, path, place[1])
            if isinstance(record, Finished):
                db.execute("UPDATE records SET data = ? WHERE id = ?", (pack(without_detail(record)), key))
