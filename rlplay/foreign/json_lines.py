"""Reads files of JSON lines that somebody else has written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The mappings in a file of JSON lines, one by one. Raises ValueError if a line is something else."""
    check_file(path)
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield mapping(line)


def lines_from(path: Path, offset: int) -> Iterator[tuple[dict[str, Any], int]]:
    """The mappings in the whole lines from `offset` on, each with the offset at which it ends."""
    check_file(path)
    with path.open("rb") as file:
        file.seek(offset)
        while (line := file.readline()).endswith(b"\n"):
            offset += len(line)
            if line.strip():
                yield mapping(line), offset


def mapping(line: str | bytes) -> dict[str, Any]:
    """The mapping that a line is. Raises ValueError if it is something else."""
    try:
        row = json.loads(line)
    except RecursionError:
        raise ValueError("a line is nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError("a line is not a mapping")
    return row


def lines(path: Path) -> list[dict[str, Any]]:
    """The same, all at once."""
    return list(lines_of(path))


def check_file(path: Path) -> None:
    """Raises ValueError if the path is something that never ends, such as a pipe."""
    if not path.is_file():
        raise ValueError("it is no file, but a pipe or a device")
