"""Applies the options of the command line to a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import msgspec

from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.named import preset
from rlplay.algorithms.own_choices import absolute_files
from rlplay.algorithms.setting_values import unknown
from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.scenario.loader import LEAST, MOST, bad_settings
from rlplay.scenario.named_files import ScenarioError, from_folder, typed_mapping
from rlplay.scenario.other_prompts import other_prompts
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_settings
from rlplay.tasks.library import has_turns, is_of_library
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import quote

OTHER_MODEL = {"learning_rate": 1e-6, "max_completion_length": 256, "num_prompts": 4, "num_generations": 8}
"""For another model: TRL's learning rate, room for a real answer, and few enough completions for the memory."""

SEVERAL_TURNS = {"max_completion_length": 160}
"""For episodes of the bundled model: its turns and what is said between them, in a context of 512 tokens."""


class Changes(TypedDict, total=False):
    """The options by name; None, or an empty sequence, changes nothing."""

    sets: Sequence[str]  # each as in "beta=0.1"
    algorithm: str | None
    surrogate: str | None
    advantage: str | None
    seed: int | None
    updates: int | None
    model: str | None
    teacher: str | None
    dtype: str | None
    tf32: bool | None
    full_determinism: bool | None
    use_peft: bool | None
    lora_r: int | None
    lora_alpha: int | None
    lora_target_modules: Sequence[str]
    task: str | None
    dataset: str | None
    dataset_config: str | None
    dataset_train_split: str | None
    columns: str | Mapping[str, str] | None
    system_prompt: str | None
    environment: str | None
    tools: Sequence[str]
    environment_factory: str | None
    chat_template_kwargs: str | Mapping[str, Any] | None
    reward: Sequence[str]
    knobs: Sequence[str]


_SETTINGS = {"algorithm": "algorithm", "surrogate": "surrogate", "advantage": "scale_rewards"}
"""Options that are short for a setting."""
_FIELDS = (
    "seed", "model", "teacher", "dtype", "tf32", "full_determinism", "use_peft", "lora_r", "lora_alpha",
    "lora_target_modules", "dataset_config", "dataset_train_split", "system_prompt", "environment",
    "environment_factory", "reward", "tools", "knobs",
)  # fmt: skip
"""Options that replace the scenario's field of that name."""
_MAPPINGS = ("columns", "chat_template_kwargs")


def with_changes(scenario: Scenario, **changes: Unpack[Changes]) -> Scenario:
    """`scenario` with the changes of the command line. Raises ScenarioError.

    Another task or the user's dataset replaces the task and the script, which is about that task. The user's reward
    replaces the weights of the task's rewards. An algorithm replaces all its axes, another model the settings in
    `OTHER_MODEL`. `sets` override all of these. Paths become absolute, so that a run can be resumed from anywhere.
    """
    if strange := changes.keys() - Changes.__annotations__.keys():
        raise TypeError(f"with_changes takes no {', '.join(sorted(strange))}")
    given: dict[str, Any] = {name: value for name, value in changes.items() if value not in (None, (), [])}
    if is_of_library(given.get("environment")):
        if others := [name for name in ("task", "dataset") if name in given]:
            raise ScenarioError(f"--environment {given['environment']} brings its own prompts; omit --{others[0]}")
        given["task"] = given.pop("environment")
    replaced = _settings(scenario, given)
    replaced |= other_prompts(scenario, given.get("task"), given.get("dataset"))
    replaced |= {name: _plain(given[name]) for name in _FIELDS if name in given}
    replaced |= {name: typed_mapping(name, given[name]) for name in _MAPPINGS if name in given}
    if "updates" in given:
        replaced["max_updates"] = given["updates"]
    changed = msgspec.structs.replace(scenario, **replaced)
    _check(changed, given)
    return from_folder(changed, Path.cwd())


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _settings(scenario: Scenario, given: dict[str, Any]) -> dict[str, Any]:
    """The changed settings of the scenario and of its stages, as its fields."""
    short = {setting: given[name] for name, setting in _SETTINGS.items() if name in given}
    sets = absolute_files(short | dict(map(named_setting, given.get("sets", ()))), Path.cwd())
    algorithm = sets.get("algorithm")
    if algorithm is not None and scenario.stages:
        raise ScenarioError(f"{scenario.name} has stages, and each has its algorithm: it takes no --algorithm")
    other = given.get("model", scenario.model) != scenario.model
    own = any(name in given for name in ("reward", "dataset", "task"))
    settings = _changed(scenario.settings, algorithm, other, own, sets)
    stages = [
        msgspec.structs.replace(stage, settings=_changed(stage.settings, None, other, own, sets))
        for stage in scenario.stages
    ]
    if other:
        settings = settings | OTHER_MODEL | sets
    elif has_turns(given.get("task", "")):
        settings = settings | SEVERAL_TURNS | sets
    return {"settings": settings, "stages": stages}


def _changed(
    settings: SomeSettings, algorithm: str | None, other_model: bool, own_reward: bool, sets: SomeSettings
) -> SomeSettings:
    """The settings of a scenario or a stage with the changes of the command line."""
    kept = dict(settings)
    weights = kept.pop("reward_weights", None) if own_reward else None
    if weights and REWARD_MODEL in weights:
        kept["reward_weights"] = {REWARD_MODEL: weights[REWARD_MODEL]}
    if algorithm is not None:
        try:
            axes = preset(algorithm).axes
        except ValueError as error:
            raise ScenarioError(str(error)) from None
        kept = {name: value for name, value in kept.items() if name not in axes} | {"algorithm": algorithm}
    if other_model:
        kept |= {name: value for name, value in OTHER_MODEL.items() if name in kept}
    return kept | sets


def named_setting(entry: str) -> tuple[str, str]:
    """The name and the value of a --set. Raises ScenarioError, one line, if it is none."""
    name, equals, value = entry.partition("=")
    if not equals or not name.strip():
        raise ScenarioError(f"--set takes name=value, as in beta=0.1; got {quote(entry)}")
    return name.strip().replace("-", "_"), value.strip()


def _check(changed: Scenario, given: dict[str, Any]) -> None:
    """Raises ScenarioError for what the options `given` made of a scenario and no run can begin with."""
    if strange := [name for name in given.get("knobs", ()) if name not in KNOBS]:
        raise ScenarioError(f"--knobs: {unknown(strange[0])}")
    try:
        msgspec.json.encode(changed)
    except UnicodeEncodeError as error:
        raise ScenarioError(f"{quote(error.object)} is not UTF-8, the encoding of run files; rename it") from None
    if problem := bad_settings(changed.settings):
        raise ScenarioError(problem)
    if "dataset" in given and not ("reward" in given or changed.environment_factory) and _maximises(changed):
        raise ScenarioError("--dataset needs --reward FILE.py:FUNCTION: without a reward there is nothing to maximise")
    for name, least in LEAST.items():
        if not least <= getattr(changed, name) <= MOST[name]:
            bound = f"{MOST[name]} or less" if getattr(changed, name) > least else f"{least} or more"
            raise ScenarioError(f"{name} is {getattr(changed, name)}; it takes {bound}")


def _maximises(scenario: Scenario) -> bool:
    """Whether a stage learns from rewards other than a reward model's score."""
    try:
        stages = stage_settings(scenario)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    return any(s.loss_type == "policy_gradient" and REWARD_MODEL not in s.reward_weights for s in stages)
