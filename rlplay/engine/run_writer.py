"""Who writes the run file where several processes train one run: the first."""

from __future__ import annotations

from pathlib import Path

from rlplay.engine import ranks
from rlplay.trace.records import AnyRecord, Started
from rlplay.trace.runfile import RunWriter


class Unwritten(RunWriter):
    """Stands in for the writer where nothing is written."""

    def __init__(self) -> None:
        pass

    def append(self, record: AnyRecord) -> None:
        """Leave it out: of several processes, the first has the same record."""

    def close(self) -> None:
        """Nothing is open."""


def run_writer(path: Path, started: Started | None) -> RunWriter:
    """The writer of a new run that begins with `started`, or of the one that is there if that is None.

    Raises RunFileError in every process if the file cannot be opened in the first.
    """

    def opened() -> RunWriter:
        if not ranks.is_first():
            return Unwritten()
        return RunWriter.reopen(path) if started is None else RunWriter.create(path, started)

    return ranks.together(opened)
