"""The settings at the start of each stage of a scenario."""

from __future__ import annotations

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.settings import Settings
from rlplay.scenario.schema import Scenario


def stage_settings(scenario: Scenario) -> list[Settings]:
    """The settings at the start of each stage of `scenario`; if it has no stages, its own settings alone.

    Raises ValueError, one line, if a name, value or combination is not allowed.
    """
    base = resolve(scenario.settings)
    return [apply_all(base, stage.settings) for stage in scenario.stages] or [base]
