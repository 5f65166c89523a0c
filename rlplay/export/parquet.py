"""A Parquet file with one completion per row, the columns of `completion_rows.py`, and a row group for each update.

Types are those of the run file. `rewards` and `gold` are maps, since the stages of a run may use different functions.
`columns` and `extra` are maps of texts, since a dataset's columns and what rewards log have any type. In `columns`, a
text is as it is and anything else is JSON; `extra` holds JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rlplay.export.atomic_output import ExportError

_COLUMNS = {
    "int32": ("schema_version", "step", "export_sequence_idx", "group_id", "sample_idx", "prompt_len"),
    "int64": ("trainer_step", "sampler_version"),
    "string": ("prompt", "completion", "role"),
    "bool": ("truncated",),
    "float": ("reward",),
    "scores": ("rewards", "gold"),
    "texts": ("columns", "extra"),
    "int32s": ("token_ids", "position_ids"),
    "strings": ("token_text",),
    "bools": ("loss_mask", "is_masked", "is_masked_high", "is_masked_low"),
    "int8s": ("clip_state",),
    "floats": (
        "inference_logprobs", "entropy", "advantages", "ref_logprobs", "values", "returns", "implicit_rewards",
        "trainer_logprobs", "importance_ratio", "dloss_dlogp", "new_logprobs", "log_importance_ratio", "mismatch_kl",
        "prob_delta", "correction", "teacher_logprobs", "distillation",
    ),
}  # fmt: skip
"""The columns of each type."""


def write_parquet(path: Path, updates: Iterable[Iterator[dict[str, Any]]]) -> None:
    """Write the rows of one update after the other, so that a long run needs no memory.

    Raises ExportError if pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise ExportError("writing Parquet needs pyarrow: pip install pyarrow") from None
    types = {
        "texts": pa.map_(pa.string(), pa.string()),
        "int32": pa.int32(), "int64": pa.int64(), "string": pa.string(), "bool": pa.bool_(), "float": pa.float32(),
        "scores": pa.map_(pa.string(), pa.float32()),
        "int32s": pa.list_(pa.int32()), "int8s": pa.list_(pa.int8()),
        "strings": pa.list_(pa.string()), "bools": pa.list_(pa.bool_()), "floats": pa.list_(pa.float32()),
    }  # fmt: skip
    schema = pa.schema([(name, types[kind]) for kind, names in _COLUMNS.items() for name in names])
    with ParquetWriter(path, schema, compression="zstd") as writer:
        for update in updates:
            rows = [
                row | {"columns": {k: _text(v) for k, v in row["columns"].items()}, "extra": _in_json(row["extra"])}
                for row in update
            ]
            # `from_pandas` turns NaN into null, since NaN means that there is no number.
            columns = [pa.array([row[field.name] for row in rows], field.type, from_pandas=True) for field in schema]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=len(rows))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _in_json(extra: dict[str, Any] | None) -> dict[str, str] | None:
    return None if extra is None else {name: msgspec.json.encode(value).decode() for name, value in extra.items()}
