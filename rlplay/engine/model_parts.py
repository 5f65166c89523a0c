"""What the trained weights of a model are: its layers, and in each attention, MLP and norms; found by its modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from rlplay.engine.checkpointing import layers_of
from rlplay.engine.model import POLICY
from rlplay.trace.moved_weights import ModelPart

_ATTENTION = re.compile(r"attn|attention", re.I)
_MLP = re.compile(r"mlp|feed_?forward|ffn|experts?\b|moe|^fc\d|dense_(4h|h)_to", re.I)
_LAST, _POSITIONS = re.compile(r"final|project_out"), re.compile(r"pos|wpe")
_NORM = re.compile(r"norm|^ln_", re.I)
_LABELS = {
    "q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "o", "out_proj": "o",
    "c_attn": "qkv", "qkv_proj": "qkv", "query_key_value": "qkv", "Wqkv": "qkv",
    "gate_proj": "gate", "up_proj": "up", "down_proj": "down", "gate_up_proj": "gate+up",
    "gate": "router", "c_fc": "up", "fc1": "up", "fc_in": "up", "fc_out": "down",
    "dense_h_to_4h": "up", "fc2": "down", "dense_4h_to_h": "down",
}  # fmt: skip
"""What the matrices of a layer are usually called, by their names in models of transformers."""
_SHORT = {("attention", "c_proj"): "o", ("attention", "dense"): "o", ("mlp", "c_proj"): "down"}
"""The same, of names whose meaning depends on the part."""


@dataclass(frozen=True)
class Place:
    """Where a weight is: its `layer`, from 1, 0 before them all or one more than there are; and a short `label`."""

    layer: int
    part: ModelPart
    label: str


@dataclass(frozen=True)
class Adapted:
    """A weight with LoRA adapters beside it: what it adds is `scaling` · B·A.

    `down` and `up` are the names of A and B in `State.parameters`, `base` is the frozen weight.
    """

    name: str
    down: str
    up: str
    scaling: float
    base: Tensor
    transposed: bool
    """Whether the base is laid out as A's input × B's output, as an embedding is."""

    def merged(self, up: Tensor, down: Tensor) -> Tensor:
        """The weight with its adapters B and A, in float32."""
        added = self.scaling * (up @ down)
        return self.base.detach().to(added.device).float() + (added.T if self.transposed else added)


def places(model: Any) -> tuple[dict[str, Place], int]:
    """Where each parameter of `model` is, and how many layers it has.

    A parameter outside the layers is before them if the model lists it before, unless it is the head's or its name says
    otherwise.
    """
    modules = dict(model.named_modules())
    numbers = {id(layer): number for number, layer in enumerate(layers_of(model), 1)}
    layers = {f"{path}.": numbers[id(module)] for path, module in modules.items() if id(module) in numbers}
    embedding, head = (_parameters_of(model, way) for way in ("get_input_embeddings", "get_output_embeddings"))
    found: dict[str, Place] = {}
    reached = False
    for name, parameter in model.named_parameters():
        layer = next((number for path, number in layers.items() if name.startswith(path)), 0)
        reached = reached or layer > 0
        path = _unwrapped(name.split(".")[:-1])
        if id(parameter) in embedding:
            part: ModelPart = "embedding"
        elif id(parameter) in head:
            part = "head"
        else:
            part = _part(path, modules[name.rpartition(".")[0]], layer > 0)
        last = reached or part == "head" or _LAST.search(name) is not None
        label = _label(path[-1] if path else name, part, id(parameter) in embedding)
        found[name] = Place(layer or (len(layers) + 1 if last else 0), part, label)
    return found, len(layers)


def is_tied(model: Any) -> bool:
    """Whether the head's weights are the embedding's."""
    embedding, head = (_parameters_of(model, way) for way in ("get_input_embeddings", "get_output_embeddings"))
    return bool(embedding & head)


_WRAPPING = ("base_layer", "lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector")
"""What peft puts between a module and its weights."""


def _unwrapped(path: list[str]) -> list[str]:
    """The modules around a weight, without those that peft adds."""
    cut = next((at for at, name in enumerate(path) if name in _WRAPPING), len(path))
    return path[:cut]


def _parameters_of(model: Any, way: str) -> set[int]:
    module = getattr(model, way)() if hasattr(model, way) else None
    return set() if module is None else {id(parameter) for parameter in module.parameters()}


def _part(path: list[str], module: nn.Module, in_layer: bool) -> ModelPart:
    names = [name for name in path if not name.isdecimal()]
    if _NORM.search(type(module).__name__) or (names and _NORM.search(names[-1])):
        return "norm"
    if isinstance(module, nn.Embedding):
        return "embedding"
    if in_layer and any(_ATTENTION.search(name) for name in names):
        return "attention"
    return "mlp" if in_layer and any(_MLP.search(name) for name in names) else "other"


def _label(name: str, part: ModelPart, tokens: bool) -> str:
    if part == "embedding":
        return "tokens" if tokens else "positions" if _POSITIONS.search(name) else name
    return _SHORT.get((part, name)) or _LABELS.get(name) or name


def adapted(model: Any, prefix: str = POLICY) -> Iterator[Adapted]:
    """The weights of a peft model that have adapters; none of any other model."""
    for path, module in model.named_modules():
        if not hasattr(module, "lora_A") or not hasattr(module, "base_layer"):
            continue
        base = module.base_layer.weight
        for adapter in module.scaling:
            if adapter in module.lora_A:
                down, up, embedding = f"lora_A.{adapter}.weight", f"lora_B.{adapter}.weight", False
            elif adapter in getattr(module, "lora_embedding_A", ()):
                down, up, embedding = f"lora_embedding_A.{adapter}", f"lora_embedding_B.{adapter}", True
            else:
                continue
            transposed = embedding or bool(getattr(module, "fan_in_fan_out", False))
            at = f"{prefix}{path}."
            yield Adapted(
                f"{at}base_layer.weight", at + down, at + up, float(module.scaling[adapter]), base, transposed
            )
