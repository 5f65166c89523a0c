"""Whether two lists of records hold the same, arrays included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlplay.foreign.recording import Recording
from rlplay.record.format import SUFFIX
from rlplay.trace.codec import RECORDS
from rlplay.trace.records import AnyRecord


def encoded(records: Sequence[AnyRecord]) -> list[bytes]:
    """The records as bytes; NaN is like NaN."""
    return [RECORDS.encode(record) for record in records]


def read_at_once(folder: Path) -> list[AnyRecord]:
    """All records of a recording."""
    reader, found = Recording(folder), list[AnyRecord]()
    while piece := reader.fresh():
        found += piece
    return found


def parts_of(folder: Path) -> dict[str, bytes]:
    """The bytes of all parts by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*" + SUFFIX))}
