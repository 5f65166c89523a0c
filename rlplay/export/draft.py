"""What is written to a path nobody else uses, whole or not at all; and the error of an export."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class ExportError(ValueError):
    """What cannot be exported, or not there; the message is one line: what, where, what to do."""


@contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """A path for a file or folder that becomes `out` once it is whole, and leaves nothing behind if it never is.

    Raises ExportError if there is something at `out` already, or it cannot be written.
    """
    if out.exists():
        raise ExportError(f"{out} exists already; choose another path, or remove it")
    draft = out.with_name(out.name + ".partial")
    try:
        yield draft
        draft.replace(out)
    except OSError as error:
        raise ExportError(f"{out} cannot be written: {error.strerror or error}; choose another path") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        with suppress(OSError):
            draft.unlink()
