"""Keeps a local run file of a foreign run up to date, so that everything that reads run files reads it too."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from rlplay.foreign.curve_files import beside
from rlplay.foreign.curve_files.beside import Beside
from rlplay.foreign.curve_files.curve_run import CurveRun
from rlplay.foreign.curve_files.formats import curve_log
from rlplay.foreign.files import Files, layout_of
from rlplay.foreign.foreign_run import ForeignRun, ForeignRunError
from rlplay.foreign.lacking import lacking
from rlplay.foreign.layouts import SEGMENTS
from rlplay.foreign.open_instruct import OpenInstruct
from rlplay.foreign.prime_stream import PrimeStream
from rlplay.foreign.recording import Recording
from rlplay.foreign.segments import Segments
from rlplay.paths import SUFFIX, find_run, runs_folder
from rlplay.record.format import parts
from rlplay.trace.records import Finished, Started
from rlplay.trace.runfile import RunFileError, RunReader, RunWriter
from rlplay.trace.runfile_format import ORIGIN, PLACE


class Copy:
    """The run file of a foreign run; several programs may keep the same one up to date."""

    def __init__(self, origin: Path, whole: bool = True, curves: Path | None = None) -> None:
        """Read all that `origin`, what another trainer has written, holds so far; or else only its first updates.

        The `curves` are shown beside it; without them, those that the user named for this run before, or that lie in
        the same output folder.

        Raises ForeignRunError if it holds no run that can be read, RunFileError if the run file cannot be written.
        """
        self._source = source_of(origin.resolve())
        self.origin = self._source.path
        started = self._source.started()
        self.path = _place(self.origin, started.run_id)
        self._curves, self._asked = None if curves is None else curves.resolve(), curves is not None
        self._beside: Beside | None = None
        self._look_again: int | None = None  # at this update for curves, if none of the same run were found
        self._create(started)
        self._resume()
        while self.pull() and whole:
            pass
        if not isinstance(self._source, CurveRun):
            self._join()
            self.pull()

    def _create(self, started: Started) -> None:
        if self.path.exists():
            return
        try:
            RunWriter.create(self.path, started, **{ORIGIN: str(self.origin)}).close()
        except RunFileError:
            if not self.path.exists():  # else another program has just created it
                raise

    def _resume(self) -> None:
        """Go on where the run file ends, which another program may have written."""
        with closing(RunReader(self.path)) as reader:
            self._place = reader.note(PLACE) or ""
            if isinstance(self._source, CurveRun):
                self._source.recall(reader.history())
        read = json.loads(self._place or "{}")
        self._turn = int(read.get("turn", 0))
        if self._curves is None and read.get("curves"):
            self._curves = Path(read["curves"])
        self._source.resume(read.get("place", {}))
        if self._beside is not None:
            self._join()

    def _join(self) -> None:
        """Find the curves beside the run, which the run file may hold already in part."""
        with closing(RunReader(self.path)) as reader:
            history = reader.history()
        if self._curves is not None:
            with self._at_will():
                self._beside = beside.named(self._curves, history)
        else:
            self._beside = beside.found(self.origin, isinstance(self._source, Recording), history)
            self._look_again = None if self._beside else 2 * max(history.updates, default=0) or 1

    @contextlib.contextmanager
    def _at_will(self) -> Iterator[None]:
        """Go on without the curves if they cannot be read, unless the user asks for them now."""
        try:
            yield
        except ForeignRunError:
            self._beside = None
            if self._asked:
                raise

    def pull(self) -> int:
        """Add what is new, of much the next updates; the number of new records. ForeignRunError or RunFileError."""
        records = self._source.fresh()
        if self._beside is not None:
            with self._at_will():
                records += self._beside.fresh(records)
        if not records:
            return 0
        # Every addition has another number: two programs may both have read a part of the same update.
        curves = {} if self._curves is None else {"curves": str(self._curves)}
        place = json.dumps({"turn": self._turn + 1, "place": self._source.place()} | curves)
        # Open for writing only while there is something to write: who only looks needs no right to write.
        with closing(RunWriter.reopen(self.path)) as writer:
            added = writer.append_copied(records, place, self._place)
        if not added:
            self._resume()
            return 0
        self._place, self._turn = place, self._turn + 1
        ended = max((record.update for record in records if isinstance(record, Finished)), default=0)
        if self._look_again is not None and ended >= self._look_again:
            self._join()
        return len(records)


def name(origin: Path) -> str:
    """What the run file is called: as the folder or file, with what it is in where that says nothing by itself."""
    own = origin.stem if origin.is_file() else origin.name.removesuffix(SUFFIX)
    if origin.parent.is_file():  # a run in a database
        return f"{origin.parent.stem}-{own.replace('/', '-')}"
    if origin.parent.name == "runs":  # where transformers has its event files, by host and time
        return origin.parent.parent.name or own
    return f"{origin.parent.name}-{own}" if own.startswith("rlplay") and origin.parent.name else own


def _place(origin: Path, run_id: str) -> Path:
    """Where the run file of a foreign run is."""
    identity = hashlib.sha256(f"{origin}\0{run_id}".encode()).hexdigest()[:8]
    return runs_folder() / f"{name(origin)}_{identity}{SUFFIX}"


def join(run: Path, curves: Path) -> None:
    """Show the curves at a path beside the run of another trainer in the run file `run`, from now on.

    Raises ForeignRunError if there are none, or if the run file is no copy.
    """
    with closing(RunReader(run)) as reader:
        origin = _origin(reader)
    if origin is None:
        raise ForeignRunError(f"{run} is no copy of another trainer's run, beside which --curves could stand")
    Copy(origin, whole=False, curves=curves)


def run_file(name_or_path: str | Path, whole: bool = True) -> Path:
    """The run file that is named as for `find_run`, or a copy of another trainer's run.

    That one is a folder, a file, or `PROJECT.db/RUN` in a database of trackio.

    The copy is up to date, or begun if it need not be `whole`. Raises ValueError, one line, if not one run matches.
    """
    path = Path(name_or_path)
    other = path.suffix != SUFFIX and (path.is_file() or path.parent.is_file())
    if path.is_dir() or (other and curve_log(path) is not None):
        return Copy(path, whole).path
    return find_run(name_or_path)


def copy_again(run: RunReader) -> Copy | None:
    """The copy that the run file `run` is, if what it was copied from is still there; None if it is no copy."""
    origin = _origin(run)
    try:
        return None if origin is None else Copy(origin, whole=False)
    except (ForeignRunError, OSError):
        return None


def _origin(run: RunReader) -> Path | None:
    """What a run file was copied from.

    A run file that is not where this user's copies are may be a stranger's, and names any folder.
    """
    origin = run.note(ORIGIN)
    if origin is None or run.path.resolve() != _place(Path(origin), run.started.run_id).resolve():
        return None
    return Path(origin)


def source_of(origin: Path) -> ForeignRun:
    """The reader for what is at `origin`. Raises ForeignRunError if no reader knows it."""
    for folder in (origin, *sorted(origin.glob("rlplay*"), key=lambda path: path.stat().st_mtime, reverse=True)):
        if folder.is_dir() and parts(folder):
            return Recording(folder)
    if any(origin.glob(SEGMENTS.pattern)):
        return Segments(origin)
    if layout := layout_of(origin):
        return Files(origin, layout)
    for reader in (PrimeStream, OpenInstruct):
        if reader.is_at(origin):
            return reader(origin)
    if log := curve_log(origin):
        return CurveRun(log)
    if not origin.is_dir():
        raise ForeignRunError(f"{origin} is no file that rlplay can read; docs/other-trainers.md lists what it can")
    raise ForeignRunError(f"{origin} holds {lacking(origin)}")
