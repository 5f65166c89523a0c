"""Where rlplay keeps recorded runs and its other files on this machine."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import glob
import os
import re
import shlex
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs

from rlplay.trace.text import quote

SUFFIX = ".rlplay"
POCKET_PATH = Path(__file__).parent / "pocket"
"""The bundled model, a folder as transformers reads it. `python -m recipe` in the repository makes it again."""
_TIME, _TIME_LENGTH = "%Y-%m-%d_%H-%M-%S", 19
"""When a run began, at the start of its name; a text of this length."""
_MOST_LISTED = 5  # runs in the message about an ambiguous name


def home() -> Path:
    """The folder for everything rlplay keeps: `RLPLAY_HOME`, or the platform's folder for user data."""
    folder = os.environ.get("RLPLAY_HOME")
    return Path(folder).expanduser() if folder else Path(platformdirs.user_data_dir("rlplay", appauthor=False))


def runs_folder() -> Path:
    """The folder of the run files; it may not exist yet."""
    return home() / "runs"


def new_run(scenario_name: str) -> Path:
    """A path that no run has yet, such as `…/runs/2026-11-21_16-05-09_learn-to-think.rlplay`.

    Several runs may start in the same second, so creating the folder for its snapshots reserves the path. An empty
    folder is removed when the program ends. If the folder cannot be created, the writer of the run reports why.
    """
    sweep()
    plain = re.sub(r"[^a-z0-9]+", "-", scenario_name.lower()).strip("-")[:60] or "run"
    stem = f"{datetime.datetime.now():{_TIME}}_{plain}"
    path, count = runs_folder() / (stem + SUFFIX), 1
    while path.exists() or not _reserve(path.with_suffix(".snapshots")):
        count += 1
        path = runs_folder() / f"{stem}_{count}{SUFFIX}"
    return path


def sweep() -> None:
    """Remove what killed programs have left: folders, drafts and snapshots of runs that never began, and scratch."""
    for folder in runs_folder().glob("*.snapshots"):
        run = folder.with_suffix(SUFFIX)
        with contextlib.suppress(OSError):
            if folder.is_symlink() or _reserved(folder):
                continue
            drafts = list(folder.parent.glob(f"{glob.escape(run.name)}.*.new*"))
            snapshots = folder.glob("*.safetensors") if drafts and not run.exists() else ()
            for path in [*snapshots, *drafts]:
                path.unlink()
            if not run.exists():
                folder.rmdir()
    for folder in _scratch().glob("*"):
        with contextlib.suppress(OSError):
            if not (folder.is_symlink() or _reserved(folder)):
                shutil.rmtree(folder)


def _scratch() -> Path:
    return home() / "scratch"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder beside the runs that is removed when the block ends, or by `sweep` if its program was killed."""
    sweep()
    folder = _scratch() / uuid.uuid4().hex
    _reserve(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_LONGEST_LOAD = 3600.0
"""Seconds after which a program that has reserved a run's path has begun the run, or never will."""


def _reserve(folder: Path) -> bool:
    """Create `folder`. False if it exists already; True also if it cannot be created."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError:
        return True
    atexit.register(_remove_if_empty, folder)
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        # The lock, and with it the reservation, ends with this process, however it ends.
        fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX)
    return True


def _reserved(folder: Path) -> bool:
    """Whether the program that has reserved the path is still there; without locks, whether it may be."""
    try:
        import fcntl
    except ImportError:
        return time.time() - folder.stat().st_mtime < _LONGEST_LOAD
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def list_runs() -> list[Path]:
    """The recorded runs, newest first: by when they began, or of copies of other trainers' runs, were last written."""
    return sorted(runs_folder().glob("*" + SUFFIX), key=lambda run: (_when(run), run.name), reverse=True)


def _when(run: Path) -> str:
    return run.name[:_TIME_LENGTH] if _began_here(run) else f"{datetime.datetime.fromtimestamp(_written(run)):{_TIME}}"


def _written(run: Path) -> float:
    try:
        return run.stat().st_mtime
    except OSError:  # deleted meanwhile
        return 0.0


def _began_here(run: Path) -> bool:
    """Whether rlplay trained the run, and did not copy it: its name begins with a time."""
    return re.match(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_", run.name) is not None


def _last(runs: list[Path]) -> Path | None:
    """The newest of `runs` that rlplay trained; without one, the newest."""
    return next(filter(_began_here, runs), next(iter(runs), None))


def own_keys() -> Path:
    """The file of the user's own keys; it may not exist."""
    return home() / "keys.yaml"


def shortest_name(path: Path) -> str:
    """The shortest name by which `find_run` finds the run file, quoted for a shell."""
    name = "last" if path == _last(list_runs()) else path.stem if path.parent == runs_folder() else str(path)
    return shlex.quote(name)


def find_run(name_or_path: str | Path) -> Path:
    """The run file with this path, or else with this name, the start of a name or a part of one in the runs folder.

    "last" is the newest run that rlplay trained, or without one the newest copy.
    Raises ValueError, one line, if no run or several match.
    """
    name = str(name_or_path)
    if Path(name).is_file():
        return Path(name)
    runs = list_runs()
    if name == "last" and (last := _last(runs)) is not None:
        return last
    matchers: tuple[Callable[[Path], bool], ...] = (
        lambda run: name in (run.name, run.stem),
        lambda run: run.name.startswith(name),
        lambda run: name in run.stem,
    )
    matching = next(filter(None, ([run for run in runs if matches(run)] for matches in matchers)), [])
    if len(matching) == 1:
        return matching[0]
    if matching:
        listed = ", ".join(run.stem for run in matching[:_MOST_LISTED]) + ", …" * (len(matching) > _MOST_LISTED)
        raise ValueError(f"{quote(name)} matches {len(matching)} runs, newest first: {listed}; write more of the name")
    raise ValueError(f"no run {quote(name)}, neither as a file nor in {runs_folder()}; 'rlplay runs' lists them")
