"""Why a trainer cannot say who taught a token: one line that names what is in the way."""

from __future__ import annotations

from typing import Any

import torch

from rlplay import host_memory
from rlplay.record.trl.teachers.adam import Adam
from rlplay.record.trl.weight_sample import SPLIT

ASKED_BYTES = 20
"""What a question takes for a while of each trained number, where the model computes; 17 in twelve layers of 512."""


def why_not(trainer: Any, named: bool, steps: int) -> str:
    """What is in the way of keeping updates of `steps` optimizer steps; "" if nothing is.

    `named`: whether rlplay has the trainer's loss.
    """
    accelerator, name = trainer.accelerator, type(trainer).__name__
    if not named:
        return f"rlplay does not have the loss of this {name}, so shares in it would be guesses"
    if accelerator.distributed_type.name in SPLIT:
        return f"{accelerator.distributed_type.name} splits the weights, which shares need whole"
    if accelerator.num_processes > 1 or trainer.args.n_gpu > 1:
        return "this run trains on several devices, and each knows only its own batch"
    if accelerator.scaler is not None:
        return "fp16 scales the loss by a number that changes; train with bf16=True or in float32"
    return _optimizer(trainer) or _model(trainer) or too_large(Adam(trainer.optimizer), kept_bytes(trainer, steps))


def _optimizer(trainer: Any) -> str:
    optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    if type(optimizer) is not torch.optim.AdamW:
        kind = type(optimizer)
        return f'the optimizer is {kind.__module__.partition(".")[0]}\'s {kind.__name__}; it takes optim="adamw_torch"'
    if any(group["amsgrad"] or group["maximize"] for group in optimizer.param_groups):
        return "the optimizer has amsgrad or maximize, and shares are of AdamW without"
    coarse = {each.dtype for each in Adam(optimizer).parameters.values()} - {torch.float32}
    if coarse:
        word = str(coarse.pop()).removeprefix("torch.")
        return (
            f"the trained weights are {word}, which rounds steps; train float32 weights with bf16=True, or an adapter"
        )
    return ""


def _model(trainer: Any) -> str:
    model = trainer.accelerator.unwrap_model(trainer.model)
    if model.get_output_embeddings() is None:
        return f"this {type(model).__name__} gives scores, and no token a probability"
    for module in model.modules():
        dropped = module.p if isinstance(module, torch.nn.Dropout) else getattr(module, "attention_dropout", 0)
        if isinstance(dropped, float) and dropped > 0:
            return f"dropout of {dropped:g} makes every pass another; set it to 0, as disable_dropout=True does"
    return ""


def kept_bytes(trainer: Any, steps: int) -> int:
    """The size of what is kept of an update: weights and moments before each step, less what is still there."""
    return (3 * steps - 1) * 4 * Adam(trainer.optimizer).numbers


def too_large(adam: Adam, kept: int = 0) -> str:
    """Why a question finds no memory on the host, with what is yet to be `kept` for it; "" if it does.

    A device of its own says by itself that it is full, and the training goes on.
    """
    shared = {each.device.type for each in adam.parameters.values()} & {"cpu", "mps"}
    return host_memory.too_large(kept + (ASKED_BYTES * adam.numbers if shared else 0))
