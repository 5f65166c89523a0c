"""What transformers calls the cache of keys and values: `cache` from 5.24 on, `past_key_values` in older releases."""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any

NEW, OLD = "cache", "past_key_values"


def cache_of(out: Any) -> Any:
    """The cache that a forward pass returned."""
    found = getattr(out, NEW, None)
    return getattr(out, OLD) if found is None else found


def with_cache(model: Any, cache: Any) -> dict[str, Any]:
    """The argument that gives `cache` to a model's forward pass."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model  # peft's takes any argument
    return {_name(base.__class__): cache}


@lru_cache(64)
def _name(kind: Any) -> str:
    forward = getattr(kind, "forward", kind.__call__)
    return NEW if NEW in inspect.signature(forward).parameters else OLD
