"""Where recorded runs live on this machine."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import re
from collections.abc import Callable
from pathlib import Path

import platformdirs

SUFFIX = ".rlplay"
POCKET_PATH = Path(__file__).parent / "pocket" / "weights"
"""The bundled model."""
_LISTED = 5  # of the runs that a name may mean


def home() -> Path:
    """The folder of everything rlplay keeps: `RLPLAY_HOME`, or the platform's place for user data."""
    given = os.environ.get("RLPLAY_HOME")
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("rlplay", appauthor=False))


def first_time() -> bool:
    """Whether nobody has been shown around here yet. Never where that could not be noted."""
    try:
        home().mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(home(), os.W_OK) and not _oriented().exists()


def note_oriented() -> None:
    """Somebody has been shown around, or did not want to be."""
    with contextlib.suppress(OSError):  # then the orientation comes once more
        _oriented().touch()


def _oriented() -> Path:
    return home() / "oriented"


def runs_folder() -> Path:
    """The folder of the run files; it need not exist yet."""
    return home() / "runs"


def new_run(scenario_name: str) -> Path:
    """A path that no run has yet, such as `…/runs/2026-11-21_16-05-09_learn-to-think.rlplay`.

    It is held by the folder for its snapshots, since several may start in the same second: whoever makes that has it.
    When the program ends an empty one goes. Where no folder can be made, whoever writes the run says why.
    """
    plain = re.sub(r"[^a-z0-9]+", "-", scenario_name.lower()).strip("-")[:60] or "run"
    stem = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}_{plain}"
    path, count = runs_folder() / (stem + SUFFIX), 1
    while path.exists() or not _held(path.with_suffix(".snapshots")):
        count += 1
        path = runs_folder() / f"{stem}_{count}{SUFFIX}"
    return path


def _held(folder: Path) -> bool:
    """Whether it is ours now, or nobody's because it cannot be made."""
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    except OSError:
        return True
    atexit.register(_leave, folder)
    return True


def _leave(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def list_runs() -> list[Path]:
    """The recorded runs, newest first."""
    return sorted(runs_folder().glob("*" + SUFFIX), reverse=True)


def find_run(given: str | Path) -> Path:
    """The run file that `given` names: a path, else a name in the runs folder, how only one begins, or a part of one.

    "last" is the newest run. Raises ValueError, one line, if no run or several fit.
    """
    name = str(given)
    if Path(given).is_file():
        return Path(given)
    runs = list_runs()
    if name == "last" and runs:
        return runs[0]
    ways: tuple[Callable[[Path], bool], ...] = (
        lambda run: name in (run.name, run.stem),
        lambda run: run.name.startswith(name),
        lambda run: name in run.stem,
    )
    fitting = next(filter(None, ([run for run in runs if fits(run)] for fits in ways)), [])
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        listed = ", ".join(run.stem for run in fitting[:_LISTED]) + ", …" * (len(fitting) > _LISTED)
        raise ValueError(f"{name!r} fits {len(fitting)} runs, newest first: {listed}; write more of the one you mean")
    raise ValueError(f"no run {name!r}, neither as a file nor in {runs_folder()}; 'rlplay runs' lists them")
