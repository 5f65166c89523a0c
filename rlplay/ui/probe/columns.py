"""The columns of a prompt as they are typed."""

from __future__ import annotations

from typing import Any

from rlplay.plain_yaml import PlainYamlError, plain_yaml


def read_columns(text: str) -> dict[str, Any] | str | None:
    """Parse typed columns, `answer: 4, unit: m`. None for an empty line; an error message if they are invalid."""
    if not text.strip():
        return None
    try:
        columns = plain_yaml(f"{{{text}}}")
    except PlainYamlError:
        columns = None
    if not isinstance(columns, dict) or None in columns.values() or not all(isinstance(key, str) for key in columns):
        return "write columns as name: value, separated by commas, for example answer: 4"
    return columns
