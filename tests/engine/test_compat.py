"""What the engine uses of transformers and torch by name: a release that lacks some of it fails here by that name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import cache_utils
from transformers.utils import import_utils

from rlplay.engine import compat
from rlplay.engine.agreement import _UNSUITED
from tests.engine.architectures import make

RELEASE = f"transformers {version('transformers')}"
ROWS = torch.tensor([0, 0, 1])


@pytest.fixture(scope="module")
def model() -> Any:
    return make("llama", 11, eos_token_id=2, pad_token_id=2).eval()


@pytest.fixture
def prompt(model: Any) -> Any:
    """The cache of two prompts of five tokens."""
    return compat.cache_of(model(input_ids=torch.arange(10).reshape(2, 5), use_cache=True))


@pytest.mark.parametrize("name", ["Cache", "DynamicLayer", "StaticLayer"])
def test_the_class_is_there(name: str) -> None:
    assert hasattr(cache_utils, name), f"{RELEASE}: cache_utils.{name} is gone; a GPU samples without graphs"


def test_a_forward_pass_takes_and_returns_the_cache_under_a_name_that_is_known(model: Any) -> None:
    given = compat.with_cache(model, None)
    assert set(given) <= {compat.NEW, compat.OLD}
    out = model(input_ids=torch.arange(5)[None], use_cache=True)
    names = [name for name in (compat.NEW, compat.OLD) if getattr(out, name, None) is not None]
    assert names, f"{RELEASE}: a forward pass returns its cache under neither name; nothing can be sampled from it"


@pytest.mark.parametrize("name", ["keys", "values"])
def test_a_layer_has_keys_and_values(prompt: Any, name: str) -> None:
    for layer in (*prompt.layers, *compat.fixed_cache(prompt, ROWS, 8).layers):
        found = getattr(layer, name, None)
        assert isinstance(found, torch.Tensor), f"{RELEASE}: {type(layer).__name__}.{name} is gone"


def test_a_layer_of_fixed_size_counts_its_places_in_a_tensor(prompt: Any) -> None:
    (layer, *_) = compat.fixed_cache(prompt, ROWS, 8).layers
    count = getattr(layer, "cumulative_length", None)
    assert isinstance(count, torch.Tensor), f"{RELEASE}: StaticLayer.cumulative_length is no tensor; a graph needs one"


def test_a_filled_cache_has_each_rows_prompt_and_nothing_behind_it(prompt: Any) -> None:
    cache = compat.fixed_cache(prompt, ROWS, 8)
    for layer in cache.layers:
        layer.keys.fill_(torch.nan)
    compat.fill(cache, prompt, ROWS, 5)
    for layer, given in zip(cache.layers, prompt.layers, strict=True):
        assert torch.equal(layer.keys[:, :, :5], given.keys[ROWS])
        assert not layer.keys[:, :, 5:].any()
        assert int(layer.cumulative_length) == 5


@pytest.mark.parametrize("name", ["DynamicLayer", "StaticLayer"])
def test_a_release_without_a_class_has_no_fixed_cache(prompt: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For that reason the engine samples from a cache that grows."""
    monkeypatch.delattr(cache_utils, name)
    with pytest.raises(_UNSUITED):
        compat.fixed_cache(prompt, ROWS, 8)


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this build of torch has no oneDNN")
def test_onednn_computes_a_linear_layer() -> None:
    operator = compat.onednn_linear()
    assert operator is not None, f"torch {torch.__version__}: mkldnn._linear_pointwise is gone; layers are torch's own"
    x, weight, bias = torch.randn(3, 4, 6), torch.randn(5, 6), torch.randn(5)
    torch.testing.assert_close(operator(x, weight, bias, "none", [], ""), x @ weight.t() + bias)


def test_a_build_of_torch_without_the_operator_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "ops", object())
    assert compat.onednn_linear.__wrapped__() is None


def test_the_models_are_those_that_transformers_finds_by_itself() -> None:
    read = getattr(import_utils, "define_import_structure", None)
    assert read is not None, f"{RELEASE}: define_import_structure is gone; the engine reads all models twice"
    folder = Path(transformers.__file__).parent / "models"
    found = read(str(folder / "__init__.py"))
    assert len(found) > 1
    assert compat.models_in(read(folder, prefix="models")) == found


def test_importing_the_models_reads_them_once() -> None:
    """In a process of its own, where nothing is imported yet."""
    program = """
import sys
from pathlib import Path
import transformers
from transformers.utils import import_utils
from rlplay.engine.compat import import_models
scan, read = import_utils.define_import_structure, []
import_utils.create_import_structure_from_path = lambda path: read.append(path) or {}
import_models()
assert "transformers.models" in sys.modules
assert import_utils.define_import_structure is scan
assert not read, read
"""
    subprocess.run([sys.executable, "-c", program], check=True)
