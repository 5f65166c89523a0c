"""The command line that plays a run again from its start: what it was started with, and the settings wanted now."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from rlplay.scenario.knobs import KNOBS
from rlplay.scenario.loader import ScenarioError, load, with_changes
from rlplay.scenario.presets import resolve
from rlplay.scenario.schema import Scenario
from rlplay.scenario.settings import Settings
from rlplay.trace.records import Started
from rlplay.ui.draft import written

_OPTIONS = {"model": "model", "dataset": "dataset", "reward": "reward", "seed": "seed", "updates": "max_updates"}


def scenario_of(started: Started) -> Scenario:
    """What a run plays, as it was recorded; words that another version wrote are passed over."""
    content = msgspec.yaml.decode(started.scenario_text, type=dict[str, Any])
    return msgspec.convert({name: content[name] for name in Scenario.__struct_fields__ if name in content}, Scenario)


class Recipe:
    """How to play one scenario again, changed by its own command line."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._name = scenario.origin or scenario.name
        try:
            self._file: Scenario | None = load(self._name)
        except ScenarioError:
            self._file = None

    def command(self, wanted: Settings) -> str:
        """What to type to play it with the settings `wanted`; quoted for a shell.

        It says how that differs from the scenario's file as it is now, and everything where there is no such file.
        """
        given = self._given()
        if self._file is None or wanted.algorithm != resolve(self._file.settings).algorithm:
            given["algorithm"] = wanted.algorithm
        held = self._settings(given)
        words = ["rlplay", self._name]
        for option, value in given.items():
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{option}", str(each)]
        for name in KNOBS:
            value = getattr(wanted, name)
            if name != "algorithm" and (held is None or value != getattr(held, name)):
                words += ["--set", f"{name}={written(value)}"]
        return shlex.join(words)

    def _given(self) -> dict[str, Any]:
        """The command line's words for all but the settings: option and value."""
        given = {option: getattr(self._scenario, field) for option, field in _OPTIONS.items()}
        if self._file is not None:
            given = {option: value for option, value in given.items() if value != getattr(self._file, _OPTIONS[option])}
        if given.get("dataset"):
            given["reward"] = self._scenario.reward
        return {option: value for option, value in given.items() if value is not None}

    def _settings(self, given: dict[str, Any]) -> Settings | None:
        """What the scenario's file and the options make of the settings; None where they name what is gone."""
        try:
            return None if self._file is None else resolve(with_changes(self._file, **given).settings)
        except ScenarioError:
            return None
