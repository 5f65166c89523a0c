"""Exports a run's tokens and numbers for other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.export.completion_rows import rows
from rlplay.export.jsonl import lines
from rlplay.export.npz import arrays, write_npz
from rlplay.export.parquet import write_parquet
from rlplay.export.tensorboard import write_events
from rlplay.trace.runfile import RunReader
from rlplay.trace.update import Update

Format = Literal["npz", "jsonl", "parquet", "tensorboard"]


def export(run: Path, kind: Format, out: Path, update: int | None = None) -> None:
    """Write one update of the run file `run`, or all updates that still have tokens, to `out`.

    TensorBoard gets the numbers of all updates. Raises RunFileError if the run cannot be read, ExportError if
    `out` cannot be written or a package is missing.
    """
    with RunReader(run) as reader:
        _WRITERS[kind](reader, out, update)


def export_npz(reader: RunReader, out: Path, update: int | None = None) -> None:
    """One update as arrays under the names of `npz.arrays`; all of them with `update_N/` before each name."""
    if update is None:
        named = ((f"update_{found.number}/{name}", array) for found in _updates(reader, None)
                 for name, array in arrays(found, reader.settings(found.number)).items())  # fmt: skip
    else:
        named = (pair for found in _updates(reader, update) for pair in arrays(found, reader.settings(update)).items())
    with atomic_output(out) as partial:
        write_npz(partial, named)


def export_jsonl(reader: RunReader, out: Path, update: int | None = None) -> None:
    """One line for each completion, fields as in `rows.rows`."""
    with atomic_output(out) as partial, partial.open("wb") as file:
        for found in _updates(reader, update):
            file.writelines(lines(found))


def export_parquet(reader: RunReader, out: Path, update: int | None = None) -> None:
    """One row for each completion, columns as the fields of `export_jsonl`, a row group for each update."""
    with atomic_output(out) as partial:
        write_parquet(partial, (rows(found) for found in _updates(reader, update)))


def export_tensorboard(reader: RunReader, out: Path, update: int | None = None) -> None:
    """A folder for `tensorboard --logdir`, with every number of every update. Raises ExportError if given one."""
    if update is not None:
        raise ExportError("--update does not work with tensorboard: its curves cover all updates; omit it")
    with atomic_output(out) as partial:
        write_events(partial, reader)


_WRITERS: dict[Format, Callable[[RunReader, Path, int | None], None]] = {
    "npz": export_npz,
    "jsonl": export_jsonl,
    "parquet": export_parquet,
    "tensorboard": export_tensorboard,
}


def _updates(reader: RunReader, update: int | None) -> Iterator[Update]:
    for number in reader.detailed() if update is None else [update]:
        found = reader.load(number)
        if found.sampled is None:
            raise ExportError(f"{reader.path}: the tokens of update {number} were thinned out; choose another update")
        yield found
