"""Lends a trainer's model other weights for a while; everything is as before afterwards, bit for bit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from rlplay.first_order import Vector
from rlplay.record.trl import compat
from rlplay.record.trl.teachers.in_float32 import in_float32
from rlplay.record.trl.teachers.kept import Forward
from rlplay.trace.targets import check_target
from rlplay.trace.teachers import Target


class LentModel:
    """A model in evaluation mode, whose weights may be replaced; see `lent`."""

    def __init__(
        self, model: Any, parameters: dict[str, nn.Parameter], forward: Forward, exact: Forward, temperature: float
    ) -> None:
        """`exact` is the forward pass in float32; where the model's weights are coarse, without gradients."""
        self._parameters, self._live, self._model = parameters, {k: p.data for k, p in parameters.items()}, model
        self.forward, self.exact, self.temperature = forward, exact, temperature
        self.device: torch.device = next(iter(parameters.values())).device

    @property
    def live(self) -> Vector:
        """The trained weights as the trainer has them."""
        return self._live

    def check(self, target: Target) -> None:
        """Raises ValueError, one line, if the model has no probability for what the target names."""
        config = self._model.config.get_text_config()
        readable, writable = (
            int(embeddings.weight.shape[0])
            for embeddings in (self._model.get_input_embeddings(), self._model.get_output_embeddings())
        )
        check_target(target, readable, writable, getattr(config, "max_position_embeddings", None) or sys.maxsize)

    def give(self, weights: Vector) -> None:
        """Replace some trained weights, on the device that they are on; all others are the trainer's."""
        for name, parameter in self._parameters.items():
            parameter.data = weights.get(name, self._live[name])

    def value(self, target: Target) -> Tensor:
        """The log-probability that a target asks for, a scalar in float32 with a gradient to the weights."""
        ids = target.prompt_ids + target.answer_ids[: target.places[-1] + 1]
        labels = torch.full((1, len(ids)), -100)
        places = [len(target.prompt_ids) + place for place in target.places]
        labels[0, places] = torch.tensor([ids[place] for place in places])
        whole = torch.tensor([ids], device=self.device)
        found = self.forward(
            input_ids=whole, attention_mask=torch.ones_like(whole), labels=labels.to(self.device), use_cache=False,
            fused_lm_head=True,
        )  # fmt: skip
        value: Tensor = found.log_probs.sum()  # TRL writes 0 where no label is
        return value

    def gradient(self, target: Target) -> tuple[float, Vector]:
        """The target's value, and its derivative by each trained weight that it depends on."""
        with torch.enable_grad():
            value = self.value(target)
            names = [*self._parameters]
            slopes = torch.autograd.grad(value, [self._parameters[name] for name in names], allow_unused=True)
        return float(value), {name: each for name, each in zip(names, slopes, strict=True) if each is not None}


@contextmanager
def lent(trainer: Any, parameters: dict[str, nn.Parameter]) -> Iterator[LentModel]:
    """The trainer's model, to be asked. Weights, modes, gradients and random numbers are then as they were."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    modes = {module: module.training for module in model.modules()}
    whole = all(each.dtype == torch.float32 for each in model.parameters() if each.is_floating_point())
    exact = compat.exact_forward(trainer, model)
    forward, exact = (exact, exact) if whole else (model.forward, _widened(model, exact))
    # TRL has built the temperature into the head of a model that samples.
    found = LentModel(model, parameters, forward, exact, float(getattr(trainer, "temperature", 1.0)))
    live = found.live
    devices = [found.device] if found.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices), torch.no_grad():
            model.eval()
            yield found
    finally:
        for name, parameter in parameters.items():
            parameter.data = live[name]
        for module, mode in modes.items():
            module.training = mode


def _widened(model: Any, forward: Forward) -> Forward:
    """The forward pass of a model with coarse weights in float32; of a compiled one, as it is."""
    if compat.compiled(model):
        plain: Forward = model.forward
        return plain

    def passed(**options: Any) -> Any:
        with in_float32(model):
            return forward(**options)

    return passed
