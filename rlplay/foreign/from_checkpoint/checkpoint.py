"""A checkpoint of TRL, as far as its texts say what it is: the step, the rates, the model. Nothing of it is run.

The pickles in it stay closed here: `optimizer.pt` holds data, which the engine reads as such, and `training_args.bin`
objects of the trainer's own classes, which nobody reads.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlplay.foreign.foreign_run import ForeignRunError
from rlplay.trace.text import brief_path, visible

ADAPTERS = "adapter_config.json"
OPTIMIZER = "optimizer.pt"
_LARGEST = 2**27
"""Bytes of a text that are read; a trainer_state.json of a million logged steps is smaller."""


@dataclass(frozen=True)
class Checkpoint:
    """What a folder `checkpoint-N` says: optimizer steps made and planned, and the logged learning rate by step.

    `base` is the name or folder of the model that adapters belong to, "" for a whole model.
    """

    path: Path
    step: int
    planned: int
    rates: dict[int, float] = field(default_factory=dict)
    base: str = ""
    dropout: dict[str, float] = field(default_factory=dict)

    @property
    def optimizer(self) -> Path | None:
        """The file with the optimizer's moments, if the trainer saved one file for all."""
        file = self.path / OPTIMIZER
        return file if file.is_file() else None


def read_checkpoint(path: Path) -> Checkpoint:
    """What the checkpoint in the folder `path` says. Raises ForeignRunError, one line, if it is none."""
    state = path / "trainer_state.json"
    if not state.is_file():
        found = sorted(each.name for each in path.glob("checkpoint-*") if each.is_dir()) if path.is_dir() else []
        hint = f"; give one of {', '.join(map(visible, found[-3:]))} in it" if found else ""
        hint = hint or "; give a folder checkpoint-N that the trainer saved, with save_steps"
        raise ForeignRunError(f"{brief_path(str(path))} is no checkpoint, as it has no trainer_state.json{hint}")
    said = _mapping(state)
    adapters, own = path / ADAPTERS, path / "config.json"
    if not adapters.is_file() and not own.is_file():
        raise ForeignRunError(
            f"{brief_path(str(path))} holds no model: neither config.json nor {ADAPTERS}; where FSDP or DeepSpeed "
            "splits the weights, save them whole"
        )
    config = _mapping(adapters if adapters.is_file() else own)
    base = str(config.get("base_model_name_or_path") or "") if adapters.is_file() else ""
    if adapters.is_file() and config.get("modules_to_save"):
        raise ForeignRunError(
            f"{brief_path(str(path))}: these adapters train whole modules (modules_to_save), of which the reference "
            "cannot be rebuilt"
        )
    return Checkpoint(
        path.resolve(), _whole(said, "global_step", state), _whole(said, "max_steps", state), _rates(said),
        base, _dropout(config),
    )  # fmt: skip


def _mapping(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST // 2**20} MiB")
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ForeignRunError(
            f"{brief_path(str(file))} cannot be read ({visible(str(error))}); copy it again"
        ) from None
    if not isinstance(content, dict):
        raise ForeignRunError(f"{brief_path(str(file))} is no mapping; copy it again")
    return content


def _whole(said: dict[str, Any], name: str, file: Path) -> int:
    value = said.get(name)
    if type(value) is not int or not 0 < value < 2**53:
        raise ForeignRunError(f"{brief_path(str(file))} has no {name}, so nothing says which step it is of")
    return value


def _rates(said: dict[str, Any]) -> dict[int, float]:
    """The learning rate that was logged with each step."""
    history = said.get("log_history")
    rows = [row for row in history if isinstance(row, dict)] if isinstance(history, list) else []
    numbers = ((row.get("step"), row.get("learning_rate")) for row in rows)
    known = ((step, rate) for step, rate in numbers if type(step) is int and isinstance(rate, float))
    return {step: rate for step, rate in known if math.isfinite(rate)}


def _dropout(config: dict[str, Any]) -> dict[str, float]:
    """The shares of numbers that training leaves out at random, where there are any."""
    named = {name: value for name, value in config.items() if "dropout" in name or name.endswith("pdrop")}
    return {visible(name): value for name, value in named.items() if isinstance(value, float) and 0 < value <= 1}
