"""The trained policy of a recorded run as a model folder that transformers loads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rlplay.algorithms.setting_values import decoded
from rlplay.algorithms.value_losses import VALUE_LOSSES
from rlplay.engine.lora import saving_options
from rlplay.engine.model import load_pretrained
from rlplay.engine.snapshots import policy_weights
from rlplay.engine.weights import Weights
from rlplay.engine.world_policy import world_policy
from rlplay.export.atomic_output import ExportError, atomic_output
from rlplay.scenario.reproduction import scenario_of
from rlplay.scenario.scenario_world import world_of
from rlplay.scenario.schema import Scenario
from rlplay.trace.runfile import RunReader, Snapshot


def export_model(run: Path, out: Path, update: int | None = None, progress: Callable[[str], object] = str) -> int:
    """Write the policy after `update`, by default the newest that is kept, to the new folder `out`; returns its update.

    The folder is what `save_pretrained` writes: config, weights, generation config, tokenizer, chat template; of LoRA
    the adapters alone, with the name of their base.
    `progress` is called with a description of each step.

    Raises ExportError, one line, if the run keeps no such state or another trainer made it, or `out` cannot be
    written; ValueError, one line, if the model that the run began with or the snapshot cannot be read or they do not
    fit together.
    """
    with RunReader(run) as reader:
        snapshot = _snapshot(reader, update)
        scenario, settings = scenario_of(reader.started), decoded(reader.settings(snapshot.update))
    policy, tokenizer = _untrained(scenario, progress)
    _take_weights(policy, snapshot)
    if scenario.world is not None:
        action_values = settings.loss_type in VALUE_LOSSES
        policy.config.exploration_rate = settings.exploration_rate if action_values else None
    with atomic_output(out) as partial:
        policy.save_pretrained(partial, **saving_options(policy))
        tokenizer.save_pretrained(partial)
    return snapshot.update


def _snapshot(reader: RunReader, update: int | None) -> Snapshot:
    """The snapshot of `update`, or the newest. Raises ExportError if it is not there."""
    if source := reader.started.source:
        raise ExportError(f"{reader.path} records a run of {source}, not its weights; use the model that it saved")
    kept = {snapshot.update: snapshot for snapshot in reader.snapshots()}
    if not kept:
        raise ExportError(f"{reader.path} keeps no snapshot, so no trained weights; play the scenario again")
    if update is None:
        return kept[max(kept)]
    if update not in kept:
        known = ", ".join(map(str, sorted(kept)))
        raise ExportError(f"{reader.path} keeps no snapshot of update {update}; it keeps those of {known}")
    return kept[update]


def _untrained(scenario: Scenario, progress: Callable[[str], object]) -> tuple[Any, Any]:
    """The policy that the scenario begins with, and its tokenizer."""
    if (world := world_of(scenario)) is not None:
        return world_policy(world, scenario.model, scenario.seed)
    return load_pretrained(scenario.model, progress, Weights.of(scenario))


@torch.no_grad()
def _take_weights(policy: Any, snapshot: Snapshot) -> None:
    """Give `policy` the weights of a snapshot, which holds every one that was trained, tied ones once."""
    weights = policy_weights(snapshot.path)
    trained = {name: parameter for name, parameter in policy.named_parameters() if parameter.requires_grad}
    if {name: p.shape for name, p in trained.items()} != {name: w.shape for name, w in weights.items()}:
        raise ValueError(f"snapshot {snapshot.path} belongs to another model; restore the one the run began with")
    for name, parameter in trained.items():
        parameter.copy_(weights[name])
