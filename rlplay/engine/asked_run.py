"""The engine of a recorded run that only answers questions: it records nothing, and the run may be open elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlplay import paths
from rlplay.engine.driver import Driver
from rlplay.engine.prepare import Progress
from rlplay.engine.run_writer import Unwritten
from rlplay.engine.snapshots import SnapshotStore
from rlplay.scenario.schema import Job
from rlplay.trace.branch import copy_snapshot
from rlplay.trace.records import Started
from rlplay.trace.runfile import RunReader, RunWriter
from rlplay.trace.runfile_format import Snapshot, snapshots_folder


@contextmanager
def asked_run(job: Job, progress: Progress) -> Iterator[Driver]:
    """The engine of a recorded run, which `job` resumes, at the end of its last update; nothing is recorded.

    It reads links to the snapshots, which stay as they are if the run goes on elsewhere, or goes back. Raises
    ValueError as `Driver.load`, one line.
    """
    with paths.scratch_folder() as folder:
        engine = _AskedRun(job, folder)
        engine.load(progress)
        yield engine


class _AskedRun(Driver):
    """A driver with snapshots in a folder of its own, whose records nobody takes."""

    def __init__(self, job: Job, folder: Path) -> None:
        super().__init__(job, lambda _record: None)
        self._folder = folder

    def _written(self, path: Path, started: Started | None) -> tuple[RunWriter, SnapshotStore]:  # noqa: ARG002 - a Driver's
        own, writer = self._folder / path.name, _Linked(path)
        with RunReader(path) as reader:
            for snapshot in reader.snapshots():
                copy_snapshot(snapshot, writer, snapshots_folder(own))
        return writer, SnapshotStore(writer, own, self._plan.stages)

    def _arrive(self, reached: int, branched: int) -> None:  # noqa: ARG002 - a Driver's
        self._go_to(reached)


class _Linked(Unwritten):
    """Stands in for the writer of the run at `path`, and lists the links, and what is written meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._snapshots: dict[int, Snapshot] = {}

    def snapshots(self) -> list[Snapshot]:
        return [self._snapshots[update] for update in sorted(self._snapshots)]

    def add_snapshot(self, update: int, path: Path, size: int) -> None:
        self._snapshots[update] = Snapshot(update, path, size)

    def drop_snapshot(self, update: int) -> None:
        del self._snapshots[update]
