"""How to reproduce a run from its start with given settings: as a command line, and as a share code."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from rlplay.algorithms.apply import apply_all, resolve
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.own_choices import OWN, names_file
from rlplay.algorithms.setting_values import decoded, written
from rlplay.algorithms.settings import Settings
from rlplay.plain_yaml import plain_yaml
from rlplay.scenario.command_line import with_changes
from rlplay.scenario.dtypes import as_recorded
from rlplay.scenario.loader import ScenarioError, load
from rlplay.scenario.names import bundled, looks_like_path
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script_settings import settings_at
from rlplay.scenario.share import Shared
from rlplay.scenario.stage_settings import stage_settings
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.records import Started
from rlplay.trace.runfile import RunReader
from rlplay.trace.runfile_format import RunFileError
from rlplay.trace.text import quote

_DATA = ("dataset_config", "dataset_train_split", "columns", "reward")
"""What a dataset on the command line replaces."""
_LORA = ("lora_r", "lora_alpha", "lora_target_modules")
_OWN = (
    "model",
    "teacher",
    "dtype",
    "tf32",
    "full_determinism",
    "use_peft",
    *_LORA,
    "task",
    "dataset",
    *_DATA,
    "system_prompt",
    "chat_template_kwargs",
    "environment",
    "tools",
    "environment_factory",
)
"""What a share code does not carry."""
_NO_CODE = "No share code: the scenario is a file of your own; pass that file on with the command."
_OPTIONS = {name: name for name in _OWN} | {"seed": "seed", "updates": "max_updates", "knobs": "knobs"}


def scenario_of(started: Started) -> Scenario:
    """The scenario that a run recorded, with the dtype that it got; keys that another version wrote are ignored."""
    return as_recorded(_scenario_in(started.scenario_text), started.dtype)


@lru_cache(maxsize=32)
def _scenario_in(text: str) -> Scenario:
    content = msgspec.convert(plain_yaml(text), dict[str, Any])
    return msgspec.convert({name: content[name] for name in Scenario.__struct_fields__ if name in content}, Scenario)


def check_understood(run: RunReader) -> None:
    """Raises RunFileError, one line, if the run's scenario or the type of a setting is not one that rlplay writes.

    A record that cannot be read is no matter of this check: the rest of the run can be looked at.
    """
    settings: list[SomeSettings] = [run.started.settings]
    with suppress(RunFileError):
        settings = list(run.timeline().ever())
    try:
        scenario_of(run.started)
        for each in settings:
            decoded(each)
    except (ValueError, TypeError, RecursionError) as error:  # msgspec's and YAML's are ValueErrors, too
        what = f"its scenario or a setting is damaged ({quote(' '.join(str(error).split()))})"
        raise RunFileError(f"{run.path}: {what}; restore it from a copy") from None


def bundled_name(started: Started) -> str:
    """The name of the bundled scenario that a run plays; empty for a user's file, whatever its name."""
    origin = scenario_of(started).origin
    return origin if origin in bundled() else ""


def _read(name: str) -> Scenario | None:
    try:
        return load(name)
    except ScenarioError:
        return None


_bundled = lru_cache(maxsize=4)(_read)
"""A bundled scenario, read once: the knobs ask for it whenever they open. A user's file may change meanwhile."""


class Reproduction:
    """How to play one scenario again, with the changes of its command line."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._name = scenario.origin or scenario.name
        self._file = _bundled(self._name) if self._name in bundled() else _read(self._name)

    def command(self, wanted: Settings) -> str:
        """What to type to play it with the settings `wanted`, quoted for a shell.

        It lists what differs from the scenario's file as the file is now; without such a file, everything.
        """
        options = self._options()
        algorithm, differing = self._differing(wanted, options)
        words = ["rlplay", self._name]
        for option, value in (options | algorithm).items():
            for each in value if isinstance(value, list) else [value]:
                words += [f"--{option}", *([] if each is True else [_word(option, each)])]
        for name, value in differing.items():
            words += ["--set", f"{name}={written(value)}"]
        return shlex.join(words)

    def code(self, wanted: Settings) -> tuple[str, str]:
        """The share code for the settings `wanted`, and what it leaves out; or "", and why there is none.

        It names nothing on this machine.
        """
        if self._file is None or looks_like_path(self._name):
            return "", _NO_CODE
        shared, left_out = self._shared(self._file, wanted)
        return shared.code, _remark(left_out)

    def moment(self, step: int, held: Settings) -> tuple[str, str]:
        """The share code for the lesson after `step` steps, with the settings `held` there; as `code`.

        It holds the settings that the run began with, and those that differ now from what the script has set.
        """
        if self._file is None or looks_like_path(self._name):
            return "", _NO_CODE
        if not step:
            return self.code(held)
        shared, left_out = self._shared(self._file, stage_settings(self._scenario)[0])
        expected, changed = settings_at(shared.scenario_with(), step), dict[str, Any]()
        if held.algorithm != expected.algorithm:
            changed["algorithm"] = held.algorithm
        changed |= _difference(held, apply_all(expected, changed))
        own = [name for name, value in changed.items() if names_file(name, value)]
        carried = {name: value for name, value in changed.items() if name not in own}
        left_out += [name for name in own if name not in left_out]
        return msgspec.structs.replace(shared, step=step, changed=carried).code, _remark(left_out)

    def _shared(self, file: Scenario, wanted: Settings) -> tuple[Shared, list[str]]:
        """The content of the code for the settings `wanted`, and what it leaves out because it is the user's own."""
        given = self._options()
        files = [name for name in ("algorithm", *OWN) if names_file(name, getattr(wanted, name))]
        if "algorithm" in files:
            wanted = msgspec.structs.replace(wanted, algorithm=resolve(file.settings).algorithm)
        algorithm, differing = self._differing(wanted, {})
        kept = {name: value for name, value in differing.items() if name not in files}
        shared = Shared(self._name, self._scenario.seed, given.get("updates"), algorithm.get("algorithm"), kept)
        return shared, [*(f"--{option}" for option in _OWN if option in given), *files]

    def _options(self) -> dict[str, Any]:
        """The options of the command line, settings excepted, each with its value."""
        found = {option: getattr(self._scenario, field) for option, field in _OPTIONS.items()}
        if self._file is not None:
            found = {option: value for option, value in found.items() if value != getattr(self._file, _OPTIONS[option])}
        if found.get("dataset"):
            found |= {option: getattr(self._scenario, option) for option in _DATA}
        if not self._scenario.use_peft:
            found = {option: value for option, value in found.items() if option not in ("use_peft", *_LORA)}
        return {option: value for option, value in found.items() if value not in (None, {})}

    def _differing(self, wanted: Settings, options: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
        """What to change in the scenario with these `options`: the algorithm, empty if that fits, and settings."""
        if self._file is not None and self._file.stages:
            # One --algorithm cannot apply to all stages, so this lists what differs from the nearest stage.
            near = (_difference(wanted, settings) for settings in self._stages(self._file, options))
            return {}, min(near, key=len)
        algorithm = {"algorithm": wanted.algorithm}
        if self._file is not None and wanted.algorithm == resolve(self._file.settings).algorithm:
            algorithm = {}
        return algorithm, _difference(wanted, self._settings(options | algorithm))

    def _settings(self, options: dict[str, Any]) -> Settings | None:
        """The settings of the scenario's file with these `options`; None where they name something that is gone."""
        try:
            return None if self._file is None else resolve(with_changes(self._file, **options).settings)
        except ScenarioError:
            return None

    def _stages(self, file: Scenario, options: dict[str, Any]) -> Iterable[Settings | None]:
        try:
            return stage_settings(with_changes(file, **options))
        except ScenarioError:
            return [None]


def _word(option: str, value: Any) -> str:
    """The value of an option as a command line has it."""
    if option == "columns":
        return ",".join(f"{name}={theirs}" for name, theirs in value.items())
    return json.dumps(value) if option == "chat_template_kwargs" else str(value)


def _remark(left_out: list[str]) -> str:
    return f"Not in the code: your {', '.join(left_out)}." if left_out else ""


def _difference(wanted: Settings, base: Settings | None) -> dict[str, Any]:
    """The settings that differ from `base`, all of them if it is None; without the algorithm's name."""
    values = {name: getattr(wanted, name) for name in KNOBS if name != "algorithm"}
    return {name: value for name, value in values.items() if base is None or value != getattr(base, name)}
