"""Which code a scenario or a run names: its files and modules, for the question whether they may run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from rlplay.algorithms.named import preset
from rlplay.algorithms.own_choices import functions_in, names_file
from rlplay.containment import OwnError
from rlplay.scenario.schema import Scenario
from rlplay.tasks.library import is_of_library, library_code
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.settings_timeline import SettingsTimeline
from rlplay.trusted import place
from rlplay.user_code import names_function


def code_of(scenario: Scenario) -> list[str]:
    """The files, as absolute paths, and the modules whose code the scenario runs, and addresses, each once."""
    one = scenario.environment, scenario.environment_factory
    entries = [*scenario.reward, *scenario.tools, *filter(None, one)]
    entries += [entry for stage in scenario.stages for entry in stage.reward]
    if scenario.task is not None and names_function(scenario.task):
        entries.append(scenario.task)
    parts = [scenario.settings, *(stage.settings for stage in scenario.stages)]
    for part in [*parts, *_changes(scenario.script)]:
        entries += code_in(part)
    return list(dict.fromkeys(each for entry in entries for each in places_of(entry)))


def places_of(entry: str) -> list[str]:
    """What runs, or is asked, for a function's name, or that of a library's environment."""
    return library_code(entry) if is_of_library(entry) else [place(entry)]


def code_of_run(scenario: Scenario, timeline: SettingsTimeline) -> list[str]:
    """The same for a recorded run that goes on: its scenario, and the settings that it has had since it began."""
    later = [place(entry) for settings in timeline.ever() for entry in code_in(settings)]
    return list(dict.fromkeys([*code_of(scenario), *later]))


def _changes(steps: Any) -> Iterator[SomeSettings]:
    """The settings that the steps of a script change, those that it asks the learner for included."""
    for value in steps.values() if isinstance(steps, dict) else steps if isinstance(steps, list) else ():
        yield from _changes(value)
    if isinstance(steps, dict) and isinstance(steps.get("set"), dict):
        yield steps["set"]


def code_in(named: SomeSettings) -> list[str]:
    """The functions that the `named` settings name, in the file of an algorithm, too."""
    found = functions_in(named)
    algorithm = named.get("algorithm")
    if names_file("algorithm", algorithm):
        with suppress(OwnError):  # a file that is gone or holds no algorithm runs nothing
            found += code_in(preset(str(algorithm)).axes)
    return found
