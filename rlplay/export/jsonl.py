"""Completions one to a line, fields as in `export_rows.py`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rlplay.export.rows import rows
from rlplay.trace.update import Update


def lines(update: Update) -> Iterator[bytes]:
    """One JSON object and a line break for each completion of an update that has been sampled."""
    # JSON has no NaN; msgspec writes null for it, which here means just that: no number.
    return (msgspec.json.encode(row) + b"\n" for row in rows(update))
