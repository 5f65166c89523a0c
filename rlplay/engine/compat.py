"""What the engine uses of other libraries without a promise that it stays.

Of transformers' cache of keys and values, releases 5.4 to 5.24:

- Its name in a forward pass: `cache` from 5.24 on, `past_key_values` in older releases.
- The layers of `transformers.cache_utils`, for a cache of fixed size: `keys`, `values`, and `cumulative_length`, a
  tensor from 5.4 on. Whatever is missing raises one of the errors that `agreement.py` takes for "not in this way", and
  the engine samples from a cache that grows.

Of transformers' import, releases 5.4 to 5.24: `define_import_structure`, which finds the models by reading 2,000 files.
`import transformers` calls it, and `import transformers.models` once more. Without it the files are read twice.

Of torch, releases 2.6 to 2.13: the operator by which its compiler lets oneDNN compute a linear layer. Without it the
layers are torch's own.

`tests/engine/test_compat.py` says which of these the installed release lacks.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_SHAPES_KEPT = 64
"""Products for whose shapes oneDNN keeps what it made ready; left to itself it keeps 1024, which take gigabytes."""

NEW, OLD = "cache", "past_key_values"


def import_models() -> None:
    """Import `transformers.models` with the structure that `import transformers` has read, without reading it again."""
    import transformers
    from transformers.utils import import_utils

    folder = Path(transformers.__file__).parent / "models"
    read = getattr(import_utils, "define_import_structure", None)
    if read is None or "transformers.models" in sys.modules:
        return

    def known(path: Any, prefix: str | None = None) -> Any:
        return models_in(read(folder, prefix="models")) if Path(path).parent == folder else read(path, prefix)

    import_utils.define_import_structure = known
    try:
        importlib.import_module("transformers.models")
    finally:
        import_utils.define_import_structure = read


def models_in(structure: Any) -> Any:
    """What `transformers` has as `models.NAME…`, as `transformers.models` has it."""
    within = {
        backends: {name.removeprefix("models."): names for name, names in there.items() if name.startswith("models.")}
        for backends, there in structure.items()
    }
    return {backends: there for backends, there in within.items() if there}


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


def fixed_cache(prompt: Any, group: Tensor, places: int) -> Any:
    """A cache like the prompts', with room for `places` tokens of every row of `group` [rows].

    Raises NotImplementedError if a layer's cache is not one of keys and values for every place before.
    """
    from transformers import cache_utils

    layers = []
    for given in prompt.layers:
        if type(given) is not cache_utils.DynamicLayer:
            raise NotImplementedError(f"a cache with a {type(given).__name__}")
        layer = cache_utils.StaticLayer(max_cache_len=places)
        layer.lazy_initialization(given.keys[group], given.values[group])
        layers.append(layer)
    return cache_utils.Cache(layers=layers)


def fill(cache: Any, prompt: Any, group: Tensor, length: int) -> None:
    """Begin `cache`, of fixed size, with the first `length` places of the prompts', for each row of `group` [rows]."""
    for layer, given in zip(cache.layers, prompt.layers, strict=True):
        for kept, new in ((layer.keys, given.keys), (layer.values, given.values)):
            kept[:, :, :length] = new[group]
            kept[:, :, length:] = 0  # the mask does not hide a NaN: 0 times NaN is NaN
        layer.cumulative_length.fill_(length)


def tensors_of(cache: Any) -> list[Tensor]:
    """The keys and values of a cache of fixed size."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


@cache
def onednn_linear() -> Callable[..., Tensor] | None:
    """oneDNN's linear layer, (input [..., k], weight [n, k], bias [n] or None, "none", [], "") to [..., n].

    It takes contiguous biases alone, and does not compute gradients. None if this build of torch has no such operator,
    or another one of that name.
    """
    for capacity in "LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY":  # read at the first product
        os.environ.setdefault(capacity, str(_SHAPES_KEPT))
    try:
        operator: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise.default
        operator(torch.ones(1, 2), torch.ones(3, 2), None, "none", [], "")
    except (AttributeError, RuntimeError, TypeError):
        return None
    return operator
