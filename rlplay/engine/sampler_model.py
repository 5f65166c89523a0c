"""The model of a sampler: the policy's earlier weights, or the same ones in less precision."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from rlplay.algorithms.settings import SamplerDtype
from rlplay.engine.lora import FrozenAdapters, has_adapters
from rlplay.engine.model import LanguageModel

_STEPS = 127
"""Steps of int8 to each side of 0."""


def precision_apart(lm: LanguageModel, wanted: SamplerDtype) -> SamplerDtype:
    """The precision of a sampler, "same" where the policy has it anyway."""
    already = all(p.dtype is torch.bfloat16 for p in lm.policy.parameters())
    return "same" if wanted == "bfloat16" and already else wanted


class SamplerModel:
    """A model beside the policy, which `take`s weights; `lm` samples with it.

    Of a policy with adapters it shares the base, unless the precision is another.
    """

    def __init__(self, lm: LanguageModel, dtype: SamplerDtype) -> None:
        self.dtype = dtype
        if dtype == "same" and has_adapters(lm.policy):
            self._model: Any = FrozenAdapters(lm.policy)
            self._model.off = False
            self._own: dict[str, Tensor] = self._model.adapters
        else:
            self._model = copy.deepcopy(lm.policy).requires_grad_(False)
            self._model.zero_grad(set_to_none=True)
            self._own = dict(self._model.named_parameters())
        self._inputs = inputs_of_linear_layers(lm.policy) if dtype == "int8" else {}
        if dtype != "same":
            for name, own in self._own.items():  # buffers, such as the angles of positions, stay as they are
                own.data = self._rounded(name, own.data.bfloat16() if dtype == "bfloat16" else own.data)
        self.lm = replace(lm, policy=self._model, fixed_steps={}, agreed=0)

    @torch.no_grad()
    def take(self, weights: Mapping[str, Tensor], lm: LanguageModel) -> LanguageModel:
        """Have these trained weights, by their names in the policy, and be run as `lm` is."""
        for name, weight in weights.items():
            self._own[name].copy_(self._rounded(name, weight))
        self.lm.rows_at_once, self.lm.retokenizes = lm.rows_at_once, lm.retokenizes
        if self.lm.fixed and not lm.fixed:
            self.lm.save_memory()
        return self.lm

    def _rounded(self, name: str, weight: Tensor) -> Tensor:
        return as_int8(weight, self._inputs[name]) if name in self._inputs else weight


def inputs_of_linear_layers(model: nn.Module) -> dict[str, int]:
    """The weights of a model's linear layers that int8 rounds, by name, each with the dimension of its inputs.

    A head that shares the embedding's weights and adapters are left as they are.
    """
    embedding = {id(p) for p in model.get_input_embeddings().parameters()}  # type: ignore[operator]
    found = {}
    for path, module in model.named_modules():
        linear = isinstance(module, nn.Linear | Conv1D) and "lora_" not in path
        if linear and id(module.weight) not in embedding:
            found[f"{path}.weight"] = 0 if isinstance(module, Conv1D) else 1
    return found


def as_int8(weight: Tensor, inputs: int) -> Tensor:
    """A weight [out, in], or with another dimension of `inputs`, as int8 holds it; each output's largest is 127 steps.

    Symmetric, with a scale per output channel; what is returned are the multiples of the scale, dtype as given.
    """
    exact = weight.float()
    scale = exact.abs().amax(dim=inputs, keepdim=True) / _STEPS
    return ((exact / scale.clamp(min=torch.finfo(torch.float32).tiny)).round() * scale).to(weight.dtype)
