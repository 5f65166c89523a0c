"""What a run needs of memory and disk, from the model's configuration, before its weights are read.

Weights, gradients and Adam's numbers are counted; what a pass keeps is estimated from the layers' sizes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import torch

from rlplay.algorithms.settings import Settings
from rlplay.engine.lora import with_adapters
from rlplay.engine.passes import LOGITS_AT_ONCE
from rlplay.engine.weights import Weights

_FLOAT32 = 4
_LOGIT_COPIES = 3
"""Of float32 that the loss holds of a pass's logits: scaled, their gradient, and one more meanwhile."""
_KEPT_OF_A_LAYER = (12, 4)
"""Numbers per token that a layer keeps for its gradient, in its hidden and its intermediate size."""


@dataclass(frozen=True)
class Needs:
    """Bytes, each held for the whole run but `step`, what an optimizer step's pass keeps, and `snapshot`, on disk."""

    weights: int
    reference: int
    gradients: int
    optimizer: int
    step: int
    snapshot: int
    sampler: int = 0

    @property
    def memory(self) -> int:
        """All of it at once, in bytes."""
        return self.weights + self.reference + self.sampler + self.gradients + self.optimizer + self.step


def needs(config: Any, weights: Weights, settings: Settings) -> Needs:
    """What a model of this configuration of transformers needs, trained as `weights` and `settings` say."""
    from transformers import AutoModelForCausalLM

    dtype: torch.dtype = getattr(torch, weights.dtype)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        model = with_adapters(model, weights) if weights.use_peft else model
    held, trained, masters, moments = 0, 0, 0, 0
    for parameter in model.parameters():
        size = parameter.numel() * parameter.element_size()
        held += size
        if parameter.requires_grad:
            trained += size
            moments += 2 * _FLOAT32 * parameter.numel()
            masters += _FLOAT32 * parameter.numel() * (parameter.dtype == torch.bfloat16)
    reference = trained if weights.use_peft else held * (2 if settings.sync_ref_model else 1)
    step = _step(config.get_text_config(), dtype.itemsize, settings)
    sampler, past = _of_sampler(held, trained, settings, weights.use_peft)
    return Needs(held, reference, trained, moments + masters, step, trained + moments + masters + past, sampler)


def _of_sampler(held: int, trained: int, settings: Settings, adapters: bool) -> tuple[int, int]:
    """Bytes of a sampler apart, with the past weights that it needs, and of those in a snapshot (`sampler.py`)."""
    if not settings.samples_apart:
        return 0, 0
    own = trained if adapters and settings.sampler_dtype == "same" else held
    past = max(settings.sampler_lag, settings.weight_sync_steps != 1)
    return own + (past + (settings.sampler_lag > 0)) * trained, past * trained


def _step(config: Any, itemsize: int, settings: Settings) -> int:
    """Bytes that the pass of an optimizer step keeps: of every layer, or of one where the others are run again."""
    answers = settings.num_prompts * (settings.num_generations if settings.rewarded else 2)
    length = settings.max_completion_length
    rows = min(-(-answers // settings.num_minibatches), max(1, LOGITS_AT_ONCE // (length * config.vocab_size)))
    tokens = length * min(rows, settings.per_device_train_batch_size or rows)
    hidden, layers = config.hidden_size, config.num_hidden_layers
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    layer = tokens * itemsize * (_KEPT_OF_A_LAYER[0] * hidden + _KEPT_OF_A_LAYER[1] * inner)
    kept = tokens * itemsize * hidden * layers + layer if settings.gradient_checkpointing else layers * layer
    return int(kept + tokens * config.vocab_size * (itemsize + _LOGIT_COPIES * _FLOAT32))


def free_memory(device: torch.device) -> int:
    """Bytes that are free where the model goes."""
    return int(torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available)


def shortages(found: Needs, weights: Weights, settings: Settings, memory: int, disk: int) -> Iterator[str]:
    """A line each for memory and disk if less is free than the run needs, with what to change."""
    if found.memory > memory:
        yield (
            f"about {_gib(found.memory)} of memory are needed and {_gib(memory)} are free: {_parts(found)}. "
            f"To need less: {', '.join(_remedies(found, weights, settings))}"
        )
    if 2 * found.snapshot > disk:
        remedy = "" if weights.use_peft else ", or --use_peft, whose snapshots hold only adapters"
        yield (
            f"a snapshot takes about {_gib(found.snapshot)} of disk, two are there for a moment, and {_gib(disk)} are "
            f"free: set RLPLAY_HOME to a larger disk{remedy}"
        )


def _parts(found: Needs) -> str:
    named = {"weights": found.weights, "reference": found.reference,
             **({"sampler": found.sampler} if found.sampler else {}), "gradients": found.gradients,
             "optimizer": found.optimizer, "an optimizer step's pass": found.step}  # fmt: skip
    return ", ".join(f"{name} {_gib(size)}" for name, size in named.items())


def _remedies(found: Needs, weights: Weights, settings: Settings) -> Iterator[str]:
    """What would make the largest parts smaller, the best first."""
    if not weights.use_peft:
        yield "--use_peft (no second copy, gradients and optimizer of adapters alone)"
    if weights.dtype == "float32":
        yield "--dtype bfloat16"
    if found.step > found.memory // 10:
        if settings.per_device_train_batch_size != 1:
            yield "--set per_device_train_batch_size=1"
        if not settings.gradient_checkpointing:
            yield "--set gradient_checkpointing=on"
    yield "a smaller model"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2g} GiB" if size < 10 * 2**30 else f"{size / 2**30:.0f} GiB"


def warns(
    weights: Weights, settings: Settings, device: torch.device, run: Path, say: Callable[[str], object]
) -> Callable[[Any], None]:
    """A function of a model's configuration that says what is short, before the weights are read."""

    def check(config: Any) -> None:
        there = next(place for place in (run.absolute(), *run.absolute().parents) if place.exists())
        disk = shutil.disk_usage(there).free
        for line in shortages(needs(config, weights, settings), weights, settings, free_memory(device), disk):
            say(line)

    return check
