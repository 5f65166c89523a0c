"""One completion per line, with the fields of `completion_rows.py`."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rlplay.export.completion_rows import rows
from rlplay.trace.update import Update


def lines(update: Update) -> Iterator[bytes]:
    """One JSON object and a line break for each completion of an update that has been sampled."""
    # JSON has no NaN; msgspec writes null, which here means the same: no number.
    return (msgspec.json.encode(row) + b"\n" for row in rows(update))
