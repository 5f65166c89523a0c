"""A trainer's own losses, and all that hangs on a trainer and its models."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import set_seed

from rlplay.record.trl import RlplayCallback
from tests.record.trainers import TRAINERS


class Run:
    """A trainer of TRL on a tiny model; with `callback`, recorded in `folder`/rec."""

    def __init__(
        self, name: str, folder: Path, callback: bool = True, options: dict[str, Any] | None = None, **own: Any
    ) -> None:
        """`options` are the trainer's, `own` the callback's."""
        self.callback = RlplayCallback(folder / "rec", **own)
        self.trainer = TRAINERS[name](folder, [self.callback] if callback else [], **(options or {}))
        self.losses: list[float] = []  # of each micro-batch, in full precision
        inner = self.trainer.training_step

        @functools.wraps(inner)
        def stepped(*values: Any, **options: Any) -> Any:
            loss = inner(*values, **options)
            self.losses.append(float(loss))
            return loss

        self.trainer.training_step = stepped

    def train(self) -> None:
        set_seed(3)  # which another trainer's sampling has moved on
        self.trainer.train()

    @property
    def weights(self) -> torch.Tensor:
        return torch.cat([p.detach().flatten() for p in self.trainer.model.parameters()])


def remarks(err: str) -> list[str]:
    """What the recorder says on standard error of what it cannot record; not where the recording is."""
    return [line for line in err.splitlines() if line.startswith("rlplay:") and " recording to " not in line]


def hanging(trainer: Any) -> dict[str, list[str]]:
    """What was set on a trainer itself, and the hooks of every module of its models; functions by their names."""
    found = {name: [_name(value)] for name, value in vars(trainer).items()}
    for name, model in vars(trainer).items():
        if isinstance(model, nn.Module):
            for path, module in model.named_modules():
                for key, hooks in vars(module).items():
                    if "hook" in key and isinstance(hooks, dict):
                        found[f"{name}.{path}.{key}"] = [_name(hook) for hook in hooks.values()]
    return found


def _name(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__)) + (" wrapped" * hasattr(value, "__wrapped__"))
