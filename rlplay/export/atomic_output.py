"""Output files and folders that appear complete or not at all, and the error of an export."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class ExportError(ValueError):
    """What cannot be exported, or not there; the message is one line: what, where, what to do."""


@contextmanager
def atomic_output(out: Path) -> Iterator[Path]:
    """A path to write a file or folder to. It becomes `out` when the block ends, or disappears if the block raises.

    Raises ExportError if `out` exists already or cannot be written.
    """
    if out.exists():
        raise ExportError(f"{out} exists already; choose another path, or remove it")
    partial = out.with_name(out.name + ".partial")
    _remove(partial)  # of an export that was killed
    try:
        yield partial
        partial.replace(out)
    except OSError as error:
        raise ExportError(f"{out} cannot be written: {error.strerror or error}; choose another path") from error
    finally:
        _remove(partial)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()
