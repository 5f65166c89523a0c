"""A run's tokens and numbers for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from rlplay.trace.export_jsonl import lines
from rlplay.trace.export_npz import arrays, write_npz
from rlplay.trace.runfile import RunFileError, RunReader
from rlplay.trace.update import Update

Format = Literal["npz", "jsonl"]


def export(run: Path, kind: Format, out: Path, update: int | None = None) -> None:
    """Write one update of the run file `run`, or all whose tokens are still there, to `out`.

    Raises RunFileError if the run cannot be read or `out` not be written.
    """
    with RunReader(run) as reader:
        (export_npz if kind == "npz" else export_jsonl)(reader, out, update)


def export_npz(reader: RunReader, out: Path, update: int | None = None) -> None:
    """One update as arrays under the names of `export_npz.arrays`; all of them with `update_N/` before each name."""
    if update is None:
        named = ((f"update_{found.number}/{name}", array) for found in _updates(reader, None)
                 for name, array in arrays(found, reader.settings(found.number)).items())  # fmt: skip
    else:
        named = (pair for found in _updates(reader, update) for pair in arrays(found, reader.settings(update)).items())
    with _draft(out) as draft:
        write_npz(draft, named)


def export_jsonl(reader: RunReader, out: Path, update: int | None = None) -> None:
    """One line for each completion, fields as in `export_jsonl.lines`."""
    with _draft(out) as draft, draft.open("wb") as file:
        for found in _updates(reader, update):
            file.writelines(lines(found))


@contextmanager
def _draft(out: Path) -> Iterator[Path]:
    """A file to write that becomes `out` once it is whole, and leaves nothing behind if it never is."""
    if out.exists():
        raise RunFileError(f"{out} exists already; choose another path, or remove it")
    draft = out.with_name(out.name + ".partial")
    try:
        yield draft
        draft.replace(out)
    except OSError as error:
        raise RunFileError(f"{out} cannot be written: {error.strerror or error}; choose another path") from error
    finally:
        with suppress(OSError):
            draft.unlink()


def _updates(reader: RunReader, update: int | None) -> Iterator[Update]:
    for number in reader.detailed() if update is None else [update]:
        found = reader.load(number)
        if found.sampled is None:
            raise RunFileError(f"{reader.path}: the tokens of update {number} were thinned out; choose another update")
        yield found
