"""The settings that the stages of a scenario begin with."""

from __future__ import annotations

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.settings import Settings
from rlplay.scenario.schema import Scenario


def stage_settings(scenario: Scenario) -> list[Settings]:
    """The settings that each stage of `scenario` begins with; its own alone where it has no stages.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    begun = resolve(scenario.settings)
    return [apply_all(begun, stage.settings) for stage in scenario.stages] or [begun]
