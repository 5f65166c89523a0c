"""A new run to do, checked before anything heavy is loaded."""

from __future__ import annotations

from pathlib import Path

from rlplay import paths
from rlplay.algorithms.own_choices import allow_all
from rlplay.scenario.scenario_world import world_of
from rlplay.scenario.schema import Job, Scenario
from rlplay.scenario.stage_settings import stage_settings
from rlplay.trace.text import quote, whole
from rlplay.worlds.values import no_values


def new_job(scenario: Scenario, out: Path | None, device: str) -> Job:
    """The job to play `scenario` and record it in `out`, by default a new file among the runs.

    It allows the scenario's own functions to run. Raises ValueError, one line, if `out` cannot be a new run file or
    the settings do not fit the scenario's world.
    """
    if out is not None and not whole(str(out)):
        raise ValueError(f"{quote(str(out))} is not UTF-8, the encoding of run files; choose another name")
    if out is not None and out.exists():
        raise ValueError(f"{out} exists already; name a new file")
    for settings in stage_settings(scenario):
        if problem := no_values(settings, world_of(scenario), scenario.model == "table"):
            raise ValueError(problem)
        allow_all(settings)
    return Job(scenario=scenario, run=str(out or paths.new_run(scenario.name)), device=device)
