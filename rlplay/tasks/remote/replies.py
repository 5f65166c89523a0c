"""Replies of servers on disk, by what was asked: an undo, a replay or another run does not ask and pay again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from rlplay import paths

_MOST = 200_000
"""Replies kept; the oldest go first."""
_memory: dict[str, bytes] = {}
"""Where the disk cannot be written."""


def key_of(address: str, body: dict[str, Any]) -> str:
    """What a request is kept under: the address and all that is asked, but no key."""
    return hashlib.sha256(json.dumps([address, body], sort_keys=True).encode()).hexdigest()


def known(keys: list[str]) -> dict[str, Any]:
    """The replies to those requests that were asked before."""
    found = {key: json.loads(_memory[key]) for key in keys if key in _memory}
    with _table() as table:
        for key in keys:
            if table is None:
                break
            row = table.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None:
                found[key] = json.loads(row[0])
    return found


def keep(replies: dict[str, Any]) -> None:
    """Keep replies for later."""
    rows = [(key, json.dumps(reply).encode()) for key, reply in replies.items()]
    with _table() as table:
        if table is None:
            _memory.update(rows)
            return
        table.executemany("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", rows)
        table.execute("DELETE FROM replies WHERE rowid <= (SELECT MAX(rowid) FROM replies) - ?", (_MOST,))
        table.commit()


@contextmanager
def _table() -> Iterator[sqlite3.Connection | None]:
    """The file's table; None if there can be none, as on a full disk."""
    try:
        paths.home().mkdir(parents=True, exist_ok=True)
        opened = sqlite3.connect(paths.home() / "replies.sqlite3", timeout=30)
        opened.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply BLOB)")
    except (OSError, sqlite3.Error):
        yield None
        return
    with closing(opened):
        yield opened
