"""The rows of a Parquet file, as far as they fit: a few of its bytes can stand for gigabytes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from rlplay.trace.inflate import Budget

_AT_ONCE = 64
_OBJECT = 72
"""Bytes that a value takes in Python besides its content, about."""


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """The rows as mappings of plain values.

    Raises ImportError without pyarrow, ValueError if they take too much memory, and pyarrow's errors if the file is
    damaged.
    """
    parquet = importlib.import_module("pyarrow.parquet")
    rows: list[dict[str, Any]] = []
    with parquet.ParquetFile(path) as file:
        budget = Budget(path.stat().st_size)
        for batch in file.iter_batches(batch_size=_AT_ONCE):
            budget.spend(sum(map(_size, batch.columns)))
            rows += batch.to_pylist()
    return rows


def _size(column: Any) -> int:
    """Bytes that the values of an Arrow array take as Python's, about: each, with what it holds."""
    types, kind = importlib.import_module("pyarrow").types, column.type
    own = _OBJECT * len(column)
    if types.is_dictionary(kind):
        return _size(column.dictionary_decode())
    if types.is_struct(kind):
        return own + sum(_size(column.field(place)) for place in range(kind.num_fields))
    if types.is_map(kind):
        return own + _size(column.keys) + _size(column.items)
    if types.is_nested(kind) and hasattr(column, "flatten"):
        return own + _size(column.flatten())
    return own + int(column.nbytes)
