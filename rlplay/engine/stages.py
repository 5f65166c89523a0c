"""Pipelines: the stages of a run, which hand the policy on to each other."""

from __future__ import annotations

from dataclasses import dataclass

from rlplay.algorithms.settings import Settings
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_settings


@dataclass(frozen=True)
class RunStage:
    """One part of a run: `updates` updates, from the end of update `begins` on.

    Of these another trainer has made those up to `made_before`, so that there are no weights before its end. With
    `restart` it begins with the weights that the run began with.
    """

    name: str
    begins: int
    settings: Settings
    updates: int
    made_before: int = 0
    restart: bool = False


def stages_of(scenario: Scenario) -> list[RunStage]:
    """The stages of a scenario; a single one without a name where it has none.

    Raises ValueError, one line, if settings do not fit.
    """
    settings, stages, begins = stage_settings(scenario), list[RunStage](), 0
    for stage, own in zip(scenario.stages, settings, strict=False):
        stages.append(RunStage(stage.name, begins, own, stage.updates, restart=stage.restart))
        begins += stage.updates
    return stages or [RunStage("", 0, settings[0], scenario.max_updates, scenario.made_before)]


def stage_at(stages: list[RunStage], update: int) -> int:
    """The index of the stage that a run is in once `update` updates are finished: at a border, the one that begins."""
    return max(index for index, stage in enumerate(stages) if stage.begins <= update)
