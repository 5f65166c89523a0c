"""Finds scenario files by name or path, reads and checks them, and applies the command line to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.named import preset
from rlplay.algorithms.own import absolute_files
from rlplay.algorithms.settings import REWARD_MODEL, Settings, unknown
from rlplay.plain_yaml import LARGEST_NUMBER, Parsed, PlainYamlError, read_text
from rlplay.scenario.lesson import card_problems, knobs_problems, panels_problems, quiz_problems, shows_problems
from rlplay.scenario.named_files import ScenarioError, from_folder, mapping_problems, typed_mapping
from rlplay.scenario.names import bundled, folder, looks_like_path
from rlplay.scenario.other_prompts import other_prompts
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import parse_step
from rlplay.scenario.script_settings import script_settings, stage_problems
from rlplay.scenario.stage_settings import stage_settings
from rlplay.scenario.world import check_claims, with_world_defaults
from rlplay.spelling import did_you_mean
from rlplay.tasks import task_names
from rlplay.user_code import names_function
from rlplay.worlds.world import WorldError, read_world

__all__ = ["ScenarioError", "bundled", "load", "read", "source", "with_changes"]

_TEXTS = (
    "title", "question", "summary", "model", "dataset", "dataset_config", "dataset_train_split", "system_prompt",
    "environment", "environment_factory",
)  # fmt: skip
_MAY_BE_EMPTY = ("question", "summary")
_LISTS = ("reward", "tools", "prompts", "lora_target_modules")
_LEAST = {"seed": 0, "max_updates": 1, "eval_every": 0, "eval_prompts": 1, "eval_generations": 1, "lora_r": 1,
          "lora_alpha": 1}  # fmt: skip
_MOST = dict.fromkeys(_LEAST, 10**9) | {"seed": LARGEST_NUMBER}

OTHER_MODEL = {"learning_rate": 1e-6, "max_completion_length": 256, "num_prompts": 4, "num_generations": 8}
"""For another model: TRL's learning rate, room for a real answer, and few enough completions for the memory."""


def load(name_or_path: str | Path) -> Scenario:
    """The bundled scenario of that name, or the one in that file. Raises ScenarioError.

    In a file, relative paths of `dataset`, `reward` and a local `model` count from the file's folder.
    """
    name = str(name_or_path)
    if not looks_like_path(name):
        if name not in bundled():
            raise ScenarioError(f"there is no scenario {name!r}{did_you_mean(name, bundled())}")
        return msgspec.structs.replace(read(folder() / f"{name}.yaml"), origin=name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise ScenarioError(f"{name}: no such file; bundled scenarios: {', '.join(bundled())}")
    scenario = msgspec.structs.replace(read(path), origin=str(path.absolute()))
    try:
        return from_folder(scenario, path.parent)
    except ScenarioError as error:
        raise ScenarioError(f"{path}:{_line_about(path, str(error))}: {error}") from None


def source(name_or_path: str | Path) -> str:
    """The text of a scenario's file, as `load` would read it."""
    name = str(name_or_path)
    path = Path(name).expanduser() if looks_like_path(name) else folder() / f"{name}.yaml"
    return path.read_text(encoding="utf-8")


def read(path: Path) -> Scenario:
    """The scenario in the file at `path`, fully checked. Raises ScenarioError."""
    try:
        parsed = Parsed(read_text(path))
    except PlainYamlError as error:
        line = f":{error.line}" if error.line else ""
        raise ScenarioError(f"{path}{line}: {error}") from None
    except (OSError, ValueError) as error:
        raise ScenarioError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    node, content = parsed.node, parsed.content
    if not isinstance(node, yaml.MappingNode):
        raise ScenarioError(f"{path}: a scenario is a mapping, as in 'title: My scenario'")
    _make_files_absolute(content, path.parent)
    for place, problem in _problems(node, content):
        raise ScenarioError(f"{path}:{place}: {problem}")
    script = [{entry: None} if isinstance(entry, str) else entry for entry in content.get("script") or []]
    try:
        scenario = msgspec.convert({"name": path.stem, **with_world_defaults(content), "script": script}, Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {error}") from None
    if not scenario.stages:
        return scenario
    return msgspec.structs.replace(scenario, max_updates=sum(stage.updates for stage in scenario.stages))


def with_changes(
    scenario: Scenario,
    *,
    sets: Sequence[str] = (),
    algorithm: str | None = None,
    seed: int | None = None,
    updates: int | None = None,
    model: str | None = None,
    dtype: str | None = None,
    use_peft: bool | None = None,
    lora_r: int | None = None,
    lora_alpha: int | None = None,
    lora_target_modules: Sequence[str] = (),
    task: str | None = None,
    dataset: str | None = None,
    dataset_config: str | None = None,
    dataset_train_split: str | None = None,
    columns: str | Mapping[str, str] | None = None,
    system_prompt: str | None = None,
    environment: str | None = None,
    tools: Sequence[str] = (),
    environment_factory: str | None = None,
    chat_template_kwargs: str | Mapping[str, Any] | None = None,
    reward: Sequence[str] = (),
    surrogate: str | None = None,
    advantage: str | None = None,
    knobs: Sequence[str] = (),
) -> Scenario:
    """`scenario` with the changes of the command line. Raises ScenarioError.

    Another task or the user's dataset replaces the task and the script, which is about that task. The user's reward
    replaces the weights of the task's rewards. An algorithm replaces all its axes, another model the settings in
    `OTHER_MODEL`. `sets` override all of these. Paths become absolute, so that a run can be resumed from anywhere.
    """
    options = {"algorithm": algorithm, "surrogate": surrogate, "scale_rewards": advantage}
    given = {name: value for name, value in options.items() if value is not None}
    given_sets = absolute_files(given | dict(map(_setting, sets)), Path.cwd())
    algorithm = given_sets.get("algorithm")
    if algorithm is not None and scenario.stages:
        raise ScenarioError(f"{scenario.name} has stages, and each has its algorithm: it takes no --algorithm")
    other = model is not None and model != scenario.model
    own = bool(reward) or dataset is not None or task is not None
    settings = _changed(scenario.settings, algorithm, other, own, given_sets)
    if other:
        settings = settings | OTHER_MODEL | given_sets
    changes: dict[str, Any] = {"settings": settings}
    changes["stages"] = [
        msgspec.structs.replace(stage, settings=_changed(stage.settings, None, other, own, given_sets))
        for stage in scenario.stages
    ]
    plain = {"seed": seed, "max_updates": updates, "model": model, "dtype": dtype, "use_peft": use_peft}
    plain |= {"lora_r": lora_r, "lora_alpha": lora_alpha}
    changes |= {name: value for name, value in plain.items() if value is not None}
    changes |= other_prompts(scenario, task, dataset)
    parts = {"dataset_config": dataset_config, "dataset_train_split": dataset_train_split}
    parts |= {"system_prompt": system_prompt, "environment": environment,
              "environment_factory": environment_factory}  # fmt: skip
    mappings = {"columns": columns, "chat_template_kwargs": chat_template_kwargs}
    changes |= {name: typed_mapping(name, given) for name, given in mappings.items() if given is not None}
    changes |= {name: value for name, value in parts.items() if value is not None}
    if strange := [name for name in knobs if name not in KNOBS]:
        raise ScenarioError(f"--knobs: {unknown(strange[0])}")
    lists = {
        "reward": list(reward),
        "tools": list(tools),
        "knobs": list(knobs),
        "lora_target_modules": list(lora_target_modules),
    }
    changes |= {name: names for name, names in lists.items() if names}
    changed: Scenario = msgspec.structs.replace(scenario, **changes)
    try:
        msgspec.json.encode(changed)
    except UnicodeEncodeError as error:
        raise ScenarioError(f"{error.object!r} is not UTF-8, the encoding of run files; rename it") from None
    if problem := _bad_settings(settings):
        raise ScenarioError(problem)
    if dataset is not None and not (reward or changed.environment_factory) and _maximises(changed):
        raise ScenarioError("--dataset needs --reward FILE.py:FUNCTION: without a reward there is nothing to maximise")
    for name, least in _LEAST.items():
        if not least <= getattr(changed, name) <= _MOST[name]:
            bound = f"{_MOST[name]} or less" if getattr(changed, name) > least else f"{least} or more"
            raise ScenarioError(f"{name} is {getattr(changed, name)}; it takes {bound}")
    return from_folder(changed, Path.cwd())


def _changed(
    settings: dict[str, Any], algorithm: str | None, other_model: bool, own_reward: bool, sets: dict[str, str]
) -> dict[str, Any]:
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


def _make_files_absolute(content: dict[str, Any], folder: Path) -> None:
    """Make the files absolute that settings name: a scenario's, its stages' and those that its script sets."""
    parts = [(part, "settings") for part in (content, *_list_of(content.get("stages")))]
    parts += [(step, "set") for step in _list_of(content.get("script"))]
    for part, key in parts:
        if isinstance(part, dict) and isinstance(part.get(key), dict):
            part[key] = absolute_files(part[key], folder)


def _maximises(scenario: Scenario) -> bool:
    """Whether a stage learns from rewards other than a reward model's score."""
    try:
        stages = stage_settings(scenario)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    return any(s.loss_type == "policy_gradient" and REWARD_MODEL not in s.reward_weights for s in stages)


def _setting(entry: str) -> tuple[str, str]:
    name, equals, value = entry.partition("=")
    if not equals or not name.strip():
        raise ScenarioError(f"--set takes name=value, as in beta=0.1; got {entry!r}")
    return name.strip().replace("-", "_"), value.strip()


def _problems(node: yaml.MappingNode, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The problems of a file in order, each with its line."""
    known = [name for name in Scenario.__struct_fields__ if name != "origin"]
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name not in known:
            yield line, f"unknown key {name!r}{did_you_mean(name, known)}"
        else:
            yield from _PROBLEMS.get(name, _bad_value)(name, line, value, content)
    yield from ((1, f"a scenario needs a {name}") for name in ("title", "question") if name not in content)
    if sum(name in content for name in ("task", "world", "dataset")) != 1:
        yield 1, "a scenario needs either a task, a world or a dataset"


def _bad_settings(settings: dict[str, Any]) -> str | None:
    if unknown_names := [str(name) for name in settings if name not in KNOBS]:
        return unknown(unknown_names[0])
    try:
        resolve(settings)
    except ValueError as error:
        return str(error)
    return None


def _line_naming(node: yaml.MappingNode, problem: str, default: int) -> int:
    lines = [key.start_mark.line + 1 for key, _ in node.value if str(key.value) in problem.partition(";")[0]]
    return lines[0] if lines else default


def _line_about(path: Path, problem: str) -> int:
    """The line of the first key that `problem` names; 1 if it names none."""
    keys = [line.partition(":")[0] for line in path.read_text(encoding="utf-8-sig").splitlines()]
    return next((number for number, key in enumerate(keys, start=1) if key in problem.split()), 1)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _settings_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    if not isinstance(node, yaml.MappingNode):
        yield line, "settings is a mapping, as in {beta: 0.1}"
    elif problem := _bad_settings(content[name]):
        yield _line_naming(node, problem, line), problem


def _stages_problems(name: str, _line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    yield from stage_problems(node, content[name], _resolved(content))


def _script_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    if not isinstance(node, yaml.SequenceNode):
        yield line, "script is a list of steps, as in '- update: 3'"
        return
    settings = _resolved(content)
    settings_so_far = None if settings is None else script_settings(settings, content.get("stages"))
    for number, (place, entry) in enumerate(zip(node.value, content[name], strict=True), start=1):
        try:
            step = parse_step({entry: None} if isinstance(entry, str) else entry)
            check_claims(step, content.get("world"))
            if settings_so_far is not None:
                settings_so_far.follow(step)
        except ValueError as error:
            yield place.start_mark.line + 1, f"script step {number}: {error}"


def _resolved(content: dict[str, Any]) -> Settings | None:
    settings = content.get("settings") or {}
    return None if not isinstance(settings, dict) or _bad_settings(settings) else resolve(settings)


def _bad_value(name: str, line: int, _node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    value = content[name]
    if name == "task" and not (isinstance(value, str) and names_function(value)) and value not in task_names():
        yield line, f"unknown task {value!r}{did_you_mean(str(value), task_names())}"
    elif name == "max_updates" and "stages" in content:
        yield line, "max_updates is the sum of the stages' updates: leave it out"
    elif name in _TEXTS and not (isinstance(value, str) and (value.strip() or name in _MAY_BE_EMPTY)):
        yield line, f"{name} takes text; got {value!r}"
    elif name in _LISTS and not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        yield line, f"{name} takes a list of texts; got {value!r}"
    elif name in ("columns", "chat_template_kwargs"):
        yield from ((line, problem) for problem in mapping_problems(name, value))
    elif name in _LEAST and not (type(value) is int and _LEAST[name] <= value <= _MOST[name]):
        at_most = f" or more, {_MOST[name]} at most" if type(value) is int and value > 0 else " or more"
        yield line, f"{name} takes a whole number, {_LEAST[name]}{at_most}; got {value!r}"


def _world_problems(name: str, line: int, node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    try:
        read_world(content[name])
    except WorldError as error:
        named = _line_naming(node, str(error), line) if isinstance(node, yaml.MappingNode) else line
        yield named, str(error)


_PROBLEMS: dict[str, Callable[[str, int, yaml.Node, dict[str, Any]], Iterator[tuple[int, str]]]] = {
    "settings": _settings_problems,
    "stages": _stages_problems,
    "script": _script_problems,
    "world": _world_problems,
    "quiz": quiz_problems,
    "card": card_problems,
    "shows": shows_problems,
    "knobs": knobs_problems,
    "panels": panels_problems,
}
