"""The files of curves that are known, and which of them a path means."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rlplay.foreign.curve_files import event_files, text_tables, trackio_files, trainer_state, wandb_files
from rlplay.foreign.curve_files.rows import CurveLog
from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.text import quote

_DEPTH = 4
"""Folders below a named one in which event files are looked for: OpenRLHF writes run/tensorboard/NAME/…."""
_MOST_FOLDERS = 5_000
"""Folders below a named one, about: somebody may name a home."""
_LISTED = 6


@dataclass(frozen=True)
class CurveFormat:
    """A kind of file with curves."""

    name: str
    find: Callable[[Path], list[Path]]
    """The runs at a path, each as what `open` takes: a folder, a file, or a run in a file."""
    open: Callable[[Path], CurveLog]


def event_folders(path: Path) -> list[Path]:
    """The folders with event files at a path, the one begun last at the end; a file itself."""
    if path.is_file():
        return [path] if event_files.is_event_file(path) else []
    if event_files.in_order(path):
        return [path]
    files = ((folder, event_files.in_order(folder)) for folder in _below(path))
    found = {folder: event_files.begun(own[0]) for folder, own in files if own}
    return sorted(found, key=lambda folder: (found[folder], folder))


def _below(path: Path) -> Iterator[Path]:
    """The folders below one, level by level; hidden ones, links and those beyond a number are left out."""
    level, count = [path], 0
    for _ in range(_DEPTH):
        below: list[Path] = []
        for folder in level:
            if count + len(below) > _MOST_FOLDERS:
                break
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                below += [
                    Path(e.path) for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)
                ]
        count += len(below)
        level = below
        yield from below


def _wandb(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".wandb" else []
    own = sorted(path.glob(wandb_files.PATTERN))
    for folder in ("", "wandb/"):
        own = own or [
            file
            for kind in ("offline-run-*", "run-*")
            for file in sorted(path.glob(f"{folder}{kind}/{wandb_files.PATTERN}"))
        ]
    return own


def _trackio(path: Path) -> list[Path]:
    database = path if path.suffix == ".db" else path.parent
    if database.suffix == ".db" and database.is_file() and trackio_files.is_database(database):
        runs = trackio_files.runs_in(database)
        return [database / run for run in runs] if path == database else [path]
    databases = [each for each in sorted(path.glob("*.db")) if trackio_files.is_database(each)] if path.is_dir() else []
    return databases if len(databases) > 1 else [run for each in databases for run in _trackio(each)]


def _states(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.name == trainer_state.NAME else []
    return [path] if any(any(path.glob(pattern)) for pattern in trainer_state.PATTERNS) else []


METRIC_FILES = (text_tables.METRICS, f"monitors/file/{text_tables.METRICS}", f"run_default/{text_tables.METRICS}")
"""Files of prime-rl\'s trainer and orchestrator, and of tinker-cookbook, in the folder of a run."""


def _json_lines(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".jsonl" and text_tables.who_wrote(path) else []
    if any((path / name).is_file() for name in METRIC_FILES):
        return [path]
    return [each for each in sorted(path.glob("*.jsonl")) if text_tables.who_wrote(each)]


def open_json_lines(path: Path) -> CurveLog:
    """The run whose files of metrics are in a folder, or are this one file."""
    files = [path] if path.is_file() else [path / name for name in METRIC_FILES if (path / name).is_file()]
    return text_tables.JsonLines(path, files, next(filter(None, map(text_tables.who_wrote, files)), "JSON lines"))


def _tables(path: Path) -> list[Path]:
    found = [path] if path.is_file() else sorted(path.glob("*.csv"))
    return [each for each in found if each.suffix == ".csv" and text_tables.is_table(each)]


FORMATS = (
    CurveFormat("TensorBoard", event_folders, event_files.EventFiles),
    CurveFormat("W&B", _wandb, wandb_files.WandbFile),
    CurveFormat("trackio", _trackio, lambda path: trackio_files.TrackioRun(path.parent, path.name)),
    CurveFormat("JSON lines", _json_lines, open_json_lines),
    CurveFormat("transformers", _states, trainer_state.TrainerState),
    CurveFormat("CSV", _tables, text_tables.CsvTable),
)
"""In this order: a folder of transformers holds event files with more numbers than its states."""


def curve_log(path: Path) -> CurveLog | None:
    """The curves at a path, which is a file, a folder or `PROJECT.db/RUN`; None if there are none.

    Raises ForeignRunError if there are several runs, with their names, or if the file cannot be read.
    """
    try:
        for known in FORMATS:
            found = known.find(path)
            if len(found) == 1:
                return known.open(found[0])
            if found:
                raise ForeignRunError(_several(path, found, known.name))
    except OSError as error:
        raise ForeignRunError(f"{path} cannot be read ({error.strerror or error})") from None
    return None


def _several(path: Path, found: list[Path], kind: str) -> str:
    names = [quote(str(each.relative_to(path))) for each in found]
    newest = ", ".join(reversed(names[-_LISTED:])) + ", …" * (len(names) > _LISTED)
    return f"{path} holds {len(found)} runs of {kind}, newest first: {newest}; name one, as in {found[-1]}"
