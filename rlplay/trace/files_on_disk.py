"""The files of a recorded run: how much disk they take, and how to delete them and nothing else."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rlplay.trace.runfile import RunWriter
from rlplay.trace.runfile_format import RunFileError, connect, snapshots_folder

_BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite appends to the name of a database for the files beside it."""

_UNFINISHED = re.compile(r"\d{6,}\.partial|\.tmp\w+")
"""What a program that is killed while it writes a snapshot leaves; `.tmp` is the name that safetensors takes."""
_SNAPSHOT = re.compile(rf"\d{{6,}}\.safetensors|{_UNFINISHED.pattern}")


@dataclass(frozen=True)
class FilesOnDisk:
    """The files that belong to one run and nothing else, as they are now."""

    run: list[Path]
    snapshots: list[Path]

    @property
    def run_bytes(self) -> int:
        """Size of the run file, its write-ahead log included."""
        return _size(self.run)

    @property
    def snapshot_bytes(self) -> int:
        """Size of the snapshots. A branch shares its first ones with the run that it left, and both count them."""
        return _size(self.snapshots)


def files_on_disk(run: Path) -> FilesOnDisk:
    """The files of the run file `run`.

    Snapshots are the files named as such in its own folder of snapshots; other files there are somebody else's, and so
    is all in a folder that is a link.
    """
    beside = [run.with_name(run.name + ending) for ending in _BESIDE]
    folder = snapshots_folder(run)
    inside = [] if folder.is_symlink() else sorted(folder.glob("*"))
    snapshots = [path for path in inside if _SNAPSHOT.fullmatch(path.name) and path.is_file()]
    return FilesOnDisk([path for path in beside if path.is_file()], snapshots)


def unfinished_snapshots(folder: Path) -> list[Path]:
    """The snapshots in `folder` that a killed program has not completed."""
    return [path for path in folder.glob("*") if _UNFINISHED.fullmatch(path.name) and path.is_file()]


def check_unused(run: Path) -> None:
    """Raises RunFileError, one line, if this is no run file or a program has it open to train, show or copy it."""
    try:
        with closing(connect(run)) as db:
            db.execute("PRAGMA busy_timeout = 0")
            # SQLite leaves write-ahead logging only if no other connection is open; writers and readers turn it on.
            db.execute("PRAGMA journal_mode = DELETE").fetchone()
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise RunFileError(f"{run} cannot be written ({error}); check its permissions") from error
        raise RunFileError(f"{run} is open in another program; stop the run or close its screen first") from None


def delete(run: Path, only_snapshots: bool) -> None:
    """Delete the snapshots of a run, and unless `only_snapshots` the run file too.

    Raises RunFileError, one line, if this is no run file, if it is open in another program, or if a file cannot be
    deleted; the run file goes last, so what is left can still be read.
    """
    check_unused(run)
    files = files_on_disk(run)
    if only_snapshots:
        with closing(RunWriter(run)) as writer:
            for snapshot in writer.snapshots():
                writer.drop_snapshot(snapshot.update)
    for path in [*files.snapshots, *([] if only_snapshots else reversed(files.run))]:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RunFileError(f"{path} cannot be deleted ({error.strerror}); check its permissions") from error
    with contextlib.suppress(OSError):  # somebody else's files may be in it
        snapshots_folder(run).rmdir()


def _size(paths: list[Path]) -> int:
    total = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # a run that grows may have deleted it meanwhile
            total += path.stat().st_size
    return total
