"""What a scenario is about: the subject to which the screen gives its room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import Exercise, ScreenVerb, Step, You
from rlplay.spelling import did_you_mean
from rlplay.tasks import stage_of
from rlplay.trace.text import quote
from rlplay.verbs import STAGES

_NO_WORLD = "stage map needs a world, and this scenario has none"


def subject(scenario: Scenario) -> str:
    """The one of `STAGES` with which the screen begins: what the file says, else what suggests itself.

    That is the map of a world with squares, and the subject of a bundled task. A run file may have been written by
    anyone: what is no stage counts for nothing.
    """
    if scenario.stage in STAGES and (scenario.stage != "map" or scenario.world is not None):
        return scenario.stage
    if scenario.world is not None:
        return "all" if "arms" in scenario.world else "map"
    return stage_of(scenario.task)


def subject_problems(name: str, line: int, _node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """What is wrong with the stage that a scenario names."""
    stage = content[name]
    if stage not in STAGES:
        yield line, f"unknown stage {quote(str(stage))}{did_you_mean(str(stage), STAGES)}"
    elif stage == "map" and content.get("world") is None:
        yield line, _NO_WORLD


def check_subject(step: Step, world: object) -> None:
    """Raises ValueError, one line, if `step` gives the room to a map, and the scenario has no world."""
    within = [step.step] if isinstance(step, You) else step.solution if isinstance(step, Exercise) else [step]
    if world is None and ScreenVerb("stage", "map") in within:
        raise ValueError(_NO_WORLD)
