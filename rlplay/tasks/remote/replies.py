"""Replies of servers on disk, by what was asked: an undo, a replay or another run does not ask and pay again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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
    """The replies to those requests that were asked before; what is damaged is asked again."""
    kept: dict[str, Any] = {key: _memory[key] for key in keys if key in _memory}
    with suppress(OSError, sqlite3.Error), _table() as table:
        for key in keys:
            row = table.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
            if row is not None:
                kept[key] = row[0]
    found = dict[str, Any]()
    for key, reply in kept.items():
        with suppress(ValueError, TypeError, RecursionError):
            found[key] = json.loads(reply)
    return found


def keep(replies: dict[str, Any]) -> None:
    """Keep replies for later; where nothing can be written, as on a full disk, for this process."""
    rows = {key: json.dumps(reply).encode() for key, reply in replies.items()}
    try:
        with _table() as table:
            table.executemany("INSERT OR REPLACE INTO replies (key, reply) VALUES (?, ?)", rows.items())
            table.execute("DELETE FROM replies WHERE rowid <= (SELECT MAX(rowid) FROM replies) - ?", (_MOST,))
            table.commit()
    except (OSError, sqlite3.Error):
        _memory.update(rows)


@contextmanager
def _table() -> Iterator[sqlite3.Connection]:
    """The file's table. Raises OSError or sqlite3.Error if there can be none."""
    paths.home().mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(paths.home() / "replies.sqlite3", timeout=30)) as opened:
        opened.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply BLOB)")
        yield opened
