"""The rows of a Parquet file, as far as they fit: a few of its bytes can stand for gigabytes."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from rlplay.trace.inflate import Budget

_AT_ONCE = 1024
_OBJECT = 64
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
            budget.spend(batch.nbytes + _OBJECT * batch.num_rows * batch.num_columns)
            rows += batch.to_pylist()
    return rows
