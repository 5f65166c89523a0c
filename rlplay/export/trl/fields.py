"""Lines of a config in the script: `name=value,` or a comment if the config has no such name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlplay.trace.text import visible

Field = str


def config_lines(fields: Mapping[str, Any]) -> Iterator[Field]:
    """A line for each field that has a value."""
    return (f"{name}={literal(value)}," for name, value in fields.items() if value is not None)


def note(text: str) -> Field:
    """A comment by rlplay."""
    return f"# rlplay: {plain(text)}"


def plain(text: str) -> str:
    """Foreign text as one line of a comment."""
    return visible(" ".join(text.split()))


def literal(value: Any) -> str:
    """A value as Python writes it, text in double quotes."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def absolute(path: str) -> str:
    """The absolute path of a file, so that the script runs anywhere; other names, such as a model's, unchanged."""
    found = Path(path).expanduser()
    return str(found.absolute()) if found.exists() else path


def absolute_entry(entry: str) -> str:
    """`FILE.py:FUNCTION` with the file's absolute path; `MODULE:FUNCTION` unchanged."""
    file, _, function = entry.rpartition(":")
    return f"{absolute(file)}:{function}"
