"""How to play a run again from its start, with the settings wanted now: as a command line, and as a share code."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.own import OWN, names_file
from rlplay.algorithms.settings import Settings, written
from rlplay.scenario.loader import ScenarioError, load, with_changes
from rlplay.scenario.names import bundled, looks_like_path
from rlplay.scenario.schema import Scenario
from rlplay.scenario.share import Shared
from rlplay.scenario.stage_settings import stage_settings
from rlplay.trace.records import Started

_DATA = ("dataset_config", "dataset_train_split", "reward")
"""What a dataset given on the command line replaces."""
_OWN = ("model", "dataset", *_DATA)
"""What a share code does not carry."""
_OPTIONS = {name: name for name in _OWN} | {"seed": "seed", "updates": "max_updates"}


def scenario_of(started: Started) -> Scenario:
    """What a run plays, as it was recorded; words that another version wrote are passed over."""
    return _scenario_in(started.scenario_text)


@lru_cache(maxsize=32)
def _scenario_in(text: str) -> Scenario:
    content = msgspec.yaml.decode(text, type=dict[str, Any])
    return msgspec.convert({name: content[name] for name in Scenario.__struct_fields__ if name in content}, Scenario)


def bundled_name(started: Started) -> str:
    """The bundled scenario that a run plays; empty for a file of one's own, whatever that calls itself."""
    origin = scenario_of(started).origin
    return origin if origin in bundled() else ""


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
        algorithm, differing = self._differing(wanted, given)
        words = ["rlplay", self._name]
        for option, value in (given | algorithm).items():
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{option}", str(each)]
        for name, value in differing.items():
            words += ["--set", f"{name}={written(value)}"]
        return shlex.join(words)

    def code(self, wanted: Settings) -> tuple[str, str]:
        """The share code for the settings `wanted` or nothing; and what it leaves out, or why there is none.

        Nothing on this machine is named in it.
        """
        if self._file is None or looks_like_path(self._name):
            return "", "No share code: the scenario is a file of your own; pass that file on with the command."
        given = self._given()
        files = [name for name in ("algorithm", *OWN) if names_file(name, getattr(wanted, name))]
        if "algorithm" in files:
            wanted = msgspec.structs.replace(wanted, algorithm=self._scenario.settings.get("algorithm", "grpo"))
        algorithm, differing = self._differing(wanted, {})
        kept = {name: value for name, value in differing.items() if name not in files}
        shared = Shared(self._name, self._scenario.seed, given.get("updates"), algorithm.get("algorithm"), kept)
        left_out = [*(f"--{option}" for option in _OWN if option in given), *files]
        return shared.code, f"Not in the code: your {', '.join(left_out)}." if left_out else ""

    def _given(self) -> dict[str, Any]:
        """The command line's words for all but the settings: option and value."""
        given = {option: getattr(self._scenario, field) for option, field in _OPTIONS.items()}
        if self._file is not None:
            given = {option: value for option, value in given.items() if value != getattr(self._file, _OPTIONS[option])}
        if given.get("dataset"):
            given |= {option: getattr(self._scenario, option) for option in _DATA}
        return {option: value for option, value in given.items() if value is not None}

    def _differing(self, wanted: Settings, given: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
        """What to change in the scenario with the options `given`: the algorithm, empty if that fits, and settings."""
        if self._file is not None and self._file.stages:
            # An algorithm cannot be given to all stages at once: what differs from the one that is nearest is named.
            near = (_difference(wanted, settings) for settings in self._stages(self._file, given))
            return {}, min(near, key=len)
        algorithm = {"algorithm": wanted.algorithm}
        if self._file is not None and wanted.algorithm == resolve(self._file.settings).algorithm:
            algorithm = {}
        held = self._settings(given | algorithm)
        return algorithm, _difference(wanted, held)

    def _settings(self, given: dict[str, Any]) -> Settings | None:
        """What the scenario's file and the options make of the settings; None where they name what is gone."""
        try:
            return None if self._file is None else resolve(with_changes(self._file, **given).settings)
        except ScenarioError:
            return None

    def _stages(self, file: Scenario, given: dict[str, Any]) -> Iterable[Settings | None]:
        try:
            return stage_settings(with_changes(file, **given))
        except ScenarioError:
            return [None]


def _difference(wanted: Settings, held: Settings | None) -> dict[str, Any]:
    """The settings that differ from those `held`, all of them if none are known; without the algorithm's name."""
    values = {name: getattr(wanted, name) for name in KNOBS if name != "algorithm"}
    return {name: value for name, value in values.items() if held is None or value != getattr(held, name)}
