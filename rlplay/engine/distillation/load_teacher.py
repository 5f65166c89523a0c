"""A teacher of its own: another model, or the policy of a run after one of its updates, with the same vocabulary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from rlplay.engine.agreement import settle
from rlplay.engine.model import LanguageModel, load_pretrained, wrap
from rlplay.engine.snapshots import policy_weights
from rlplay.engine.weights import Weights
from rlplay.paths import find_run
from rlplay.scenario.reproduction import scenario_of
from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import snapshots_folder
from rlplay.trace.text import quote

LAST = "last"
"""In place of the number of an update, the last one whose weights are there."""


def load_teacher(
    name: str, student: LanguageModel, weights: Weights, progress: Callable[[str], object]
) -> LanguageModel:
    """The frozen model that `name` stands for, on the student's device: as `load_pretrained` takes it, or RUN@UPDATE.

    Raises ValueError, one line, if there is none or its vocabulary is another one.
    """
    run, at, update = name.rpartition("@")
    if at and (update == LAST or update.isdecimal()) and not Path(name).exists():
        found = _of_run(run, update, student.device, progress)
    else:
        found = wrap(*load_pretrained(name, progress, replace(weights, use_peft=False)), student.device)
    check_vocabulary(name, found, student)
    settle(found)
    found.policy.requires_grad_(False)
    return found


def check_vocabulary(name: str, teacher: LanguageModel, student: LanguageModel) -> None:
    """Raises ValueError, one line, if the same id could mean another token."""
    own, other = student.tokenizer.get_vocab(), teacher.tokenizer.get_vocab()
    if own == other and teacher.vocabulary == student.vocabulary:
        return
    what = f"it has {teacher.vocabulary:,} tokens, the policy {student.vocabulary:,}"
    if teacher.vocabulary == student.vocabulary:
        differ = next((token for token in own if other.get(token) != own[token]), next(iter(other.keys() - own), ""))
        what = f"token {quote(differ)} is not the same one in both"
    raise ValueError(
        f"teacher {quote(name)}: its vocabulary is not the policy's, so probabilities cannot be compared: {what}; "
        "choose a model of the same family"
    )


def _of_run(run: str, update: str, device: torch.device, progress: Callable[[str], object]) -> LanguageModel:
    """The policy of a run of rlplay as it was after an update."""
    path = find_run(run)
    with RunReader(path) as reader:
        started = reader.started
    tensors = _held(path, update)
    scenario = scenario_of(started)
    if scenario.world is not None or started.source:
        raise ValueError(f"teacher {quote(run)}: this run trained no language model of which rlplay has the weights")
    found = wrap(*load_pretrained(started.model, progress, Weights.of(scenario)), device)
    own = dict(found.policy.named_parameters())
    if others := [name for name, each in tensors.items() if name not in own or own[name].shape != each.shape]:
        raise ValueError(f"teacher {quote(run)}: its weights do not fit {quote(started.model)} ({others[0]})")
    with torch.no_grad():
        for name, each in tensors.items():
            own[name].copy_(each)
    return found


def _held(path: Path, update: str) -> dict[str, Tensor]:
    folder = snapshots_folder(path)
    there = {} if folder.is_symlink() else {each.stem: each for each in sorted(folder.glob("*.safetensors"))}
    name = max(there, default="") if update == LAST else f"{int(update):06d}"
    if name not in there or there[name].is_symlink():
        kept = ", ".join(str(int(each)) for each in there) or "none"
        raise ValueError(
            f"teacher {quote(path.stem)}@{update}: the weights after that update are not there; of this run there are "
            f"those after {kept}"
        )
    return policy_weights(there[name])
