"""Reads tinker-cookbook's token database, where each file holds what was sampled since the one before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlplay.algorithms.settings import Settings
from rlplay.foreign.files import HalfWrittenError, age, read, records
from rlplay.foreign.foreign_run import beginning
from rlplay.foreign.layouts import SEGMENTS, Row
from rlplay.trace.records import AnyRecord, Started

SETTLED = 15.0
"""Seconds without a new file after which the newest iteration is taken to be complete: its writer flushes every 5."""


class Segments:
    """The token database below the folder `path`; iteration N is update N + 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: set[Path] = set()
        self._waiting: dict[int, list[Row]] = {}  # by update
        self._done = 0

    def started(self) -> Started:
        """What config.json says of the run."""
        title = f"{SEGMENTS.source} · {self.path.name}"
        return beginning(SEGMENTS.source, title=title, **SEGMENTS.about(self.path))

    def place(self) -> dict[str, Any]:
        """The last update read."""
        return {"update": self._done}

    def resume(self, place: Mapping[str, Any]) -> None:
        """Go on after this update."""
        self._done, self._seen, self._waiting = place.get("update", 0), set(), {}

    def fresh(self) -> list[AnyRecord]:
        """The iterations that are complete: there are later ones, or nothing was written for a while."""
        paths = sorted(self.path.glob(SEGMENTS.pattern))
        try:
            for path in paths:
                self._take(path)
            settled = bool(paths) and min(map(age, paths)) > SETTLED
        except HalfWrittenError:
            settled = False
        found: list[AnyRecord] = []
        for number in sorted(self._waiting):
            if number < max(self._waiting) or settled:
                rows = self._waiting[number]
                found += records(number, number - 1, rows, self.path, SEGMENTS, Settings(algorithm=""))
                self._done = number
        self._waiting = {number: rows for number, rows in self._waiting.items() if number > self._done}
        return found

    def _take(self, path: Path) -> None:
        """Sort a file's rows that were trained on by update, unless that was done."""
        if path in self._seen:
            return
        for row in read(path, SEGMENTS):
            if row.get("split") == "train" and row.get("source") == "rollout" and row["iteration"] + 1 > self._done:
                self._waiting.setdefault(row["iteration"] + 1, []).append(row)
        self._seen.add(path)
