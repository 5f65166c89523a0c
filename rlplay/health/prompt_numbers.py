"""The prompts of one update as numbers, by which they are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from rlplay.trace.records import Sampled


def row_key(prompt: str, columns: Mapping[str, object]) -> int:
    """One number for a row of a dataset: its prompt and its other columns."""
    return hash((prompt, tuple(sorted((name, repr(value)) for name, value in columns.items()))))


def row_keys(sampled: Sampled) -> frozenset[int]:
    """One number for each different row."""
    columns = sampled.columns or [{}] * len(sampled.prompts)
    return frozenset(map(row_key, sampled.prompts, columns))


def prompt_keys(sampled: Sampled) -> frozenset[int]:
    """One number for each different prompt as the model reads it; as the user wrote it, if no ids are on record."""
    spans = list(pairwise(sampled.prompt_offsets.tolist()))
    if len(spans) == len(sampled.prompts) and all(start < end for start, end in spans):
        return frozenset(hash(sampled.prompt_ids[start:end].tobytes()) for start, end in spans)
    return frozenset(map(hash, sampled.prompts))
