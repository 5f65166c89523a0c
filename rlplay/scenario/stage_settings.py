"""The settings at the start of each stage of a scenario, and what each learns from."""

from __future__ import annotations

from typing import Any

import msgspec

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.settings import Settings
from rlplay.scenario.schema import Scenario, Stage


def stage_settings(scenario: Scenario) -> list[Settings]:
    """The settings at the start of each stage of `scenario`; if it has no stages, its own settings alone.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    base = resolve(scenario.settings)
    return [apply_all(base, stage.settings) for stage in scenario.stages] or [base]


def stage_scenarios(scenario: Scenario) -> list[Scenario]:
    """The scenario as each of its stages sees it, with the stage's own dataset and rewards, and without stages.

    Stages without either give equal scenarios; a scenario without stages gives itself.
    """
    return [_as_seen(scenario, stage) for stage in scenario.stages] or [scenario]


def _as_seen(scenario: Scenario, stage: Stage) -> Scenario:
    changes: dict[str, Any] = {"stages": []}
    if stage.reward:
        changes["reward"] = stage.reward
    if stage.dataset is not None:
        changes |= {"task": None, "prompts": None, "dataset": stage.dataset, "dataset_config": stage.dataset_config}
        changes |= {"dataset_train_split": stage.dataset_train_split, "columns": stage.columns}
    return msgspec.structs.replace(scenario, **changes)
