"""Where recorded runs live on this machine."""

from __future__ import annotations

import datetime
import os
import re
from pathlib import Path

import platformdirs

SUFFIX = ".rlplay"


def home() -> Path:
    """The folder of everything rlplay keeps: `RLPLAY_HOME`, or the platform's place for user data."""
    given = os.environ.get("RLPLAY_HOME")
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("rlplay", appauthor=False))


def first_time() -> bool:
    """Whether nobody has played here yet. True only once, and never where that cannot be noted."""
    try:
        home().mkdir(parents=True, exist_ok=True)
        (home() / "oriented").touch(exist_ok=False)
    except OSError:
        return False
    return not list_runs()


def runs_folder() -> Path:
    """The folder of the run files; it need not exist yet."""
    return home() / "runs"


def new_run(scenario_name: str) -> Path:
    """A path that no run has yet, such as `…/runs/2026-11-21_16-05-09_learn-to-think.rlplay`; nothing is created."""
    plain = re.sub(r"[^a-z0-9]+", "-", scenario_name.lower()).strip("-")[:60] or "run"
    stem = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}_{plain}"
    path, count = runs_folder() / (stem + SUFFIX), 1
    while path.exists() or path.with_suffix(".snapshots").exists():
        count += 1
        path = runs_folder() / f"{stem}_{count}{SUFFIX}"
    return path


def list_runs() -> list[Path]:
    """The recorded runs, newest first."""
    return sorted(runs_folder().glob("*" + SUFFIX), reverse=True)


def find_run(given: str | Path) -> Path:
    """The run file that `given` names: a path, a file name in the runs folder, or a part that only one name has.

    "last" is the newest run. Raises ValueError, one line, if no run or several fit.
    """
    if Path(given).is_file():
        return Path(given)
    runs = list_runs()
    if str(given) == "last" and runs:
        return runs[0]
    exact = [run for run in runs if str(given) in (run.name, run.stem)]
    fitting = exact or [run for run in runs if str(given) in run.name]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError(
            f"{given!s} fits {len(fitting)} runs ({fitting[0].stem}, {fitting[1].stem}…); write more of it"
        )
    raise ValueError(f"no run {str(given)!r}, neither as a file nor in {runs_folder()}; `rlplay runs` lists them")
