"""Finds scenario files by name or path, reads and checks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rlplay.algorithms.apply import resolve
from rlplay.algorithms.knobs import KNOBS
from rlplay.algorithms.own_choices import absolute_files
from rlplay.algorithms.setting_values import unknown
from rlplay.algorithms.settings import Settings
from rlplay.plain_yaml import LARGEST_NUMBER, Parsed, PlainYamlError, read_text
from rlplay.scenario.lesson import card_problems, knobs_problems, panels_problems, quiz_problems, shows_problems
from rlplay.scenario.named_files import ScenarioError, from_folder, mapping_problems
from rlplay.scenario.names import bundled, folder, looks_like_path
from rlplay.scenario.scenario_world import check_claims, with_world_defaults
from rlplay.scenario.schema import Scenario
from rlplay.scenario.script import parse_step
from rlplay.scenario.script_settings import script_settings, stage_problems
from rlplay.scenario.subject import check_subject, subject_problems
from rlplay.spelling import did_you_mean
from rlplay.tasks import task_names
from rlplay.tasks.library import is_of_library
from rlplay.trace.kinds import SomeSettings
from rlplay.trace.text import brief_path, quote
from rlplay.user_code import names_function
from rlplay.worlds.world import WorldError, read_world

__all__ = ["ScenarioError", "bundled", "load", "read", "source"]

_TEXTS = (
    "title", "question", "summary", "model", "dataset", "dataset_config", "dataset_train_split", "system_prompt",
    "environment", "environment_factory", "teacher", "teacher_prompt_template", "privileged_context",
)  # fmt: skip
_MAY_BE_EMPTY = ("question", "summary")
_LISTS = ("reward", "tools", "prompts", "lora_target_modules")
LEAST = {"seed": 0, "max_updates": 1, "eval_every": 0, "eval_prompts": 1, "eval_generations": 1, "lora_r": 1,
          "lora_alpha": 1}  # fmt: skip
"""The whole numbers of a scenario and their smallest values."""
MOST = dict.fromkeys(LEAST, 10**9) | {"seed": LARGEST_NUMBER}
"""Their largest values."""


def load(name_or_path: str | Path) -> Scenario:
    """The bundled scenario of that name, or the one in that file. Raises ScenarioError.

    In a file, relative paths of `dataset`, `reward` and a local `model` count from the file's folder.
    """
    name = str(name_or_path)
    if not looks_like_path(name):
        if name not in bundled():
            raise ScenarioError(f"there is no scenario {quote(name)}{did_you_mean(name, bundled())}")
        return msgspec.structs.replace(read(folder() / f"{name}.yaml"), origin=name)
    path = Path(name).expanduser()
    if not path.is_file():
        raise ScenarioError(f"{brief_path(name)}: no such file; 'rlplay list' names the bundled scenarios")
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
    of_library = is_of_library(content.get("environment")) and "task" not in content
    if of_library:  # it brings prompts and rewards, too
        content["task"] = content["environment"]
    for place, problem in _problems(node, content):
        raise ScenarioError(f"{path}:{place}: {problem}")
    script = [{entry: None} if isinstance(entry, str) else entry for entry in content.get("script") or []]
    if of_library:
        del content["environment"]
    try:
        scenario = msgspec.convert({"name": path.stem, **with_world_defaults(content), "script": script}, Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{path}: {error}") from None
    if not scenario.stages:
        return scenario
    return msgspec.structs.replace(scenario, max_updates=sum(stage.updates for stage in scenario.stages))


def _make_files_absolute(content: dict[str, Any], folder: Path) -> None:
    """Make the files absolute that settings name: a scenario's, its stages' and those that its script sets."""
    parts = [(part, "settings") for part in (content, *_list_of(content.get("stages")))]
    parts += [(step, "set") for step in _list_of(content.get("script"))]
    for part, key in parts:
        if isinstance(part, dict) and isinstance(part.get(key), dict):
            part[key] = absolute_files(part[key], folder)


def _problems(node: yaml.MappingNode, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """The problems of a file in order, each with its line."""
    known = [name for name in Scenario.__struct_fields__ if name not in ("made_before", "origin")]
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name not in known:
            yield line, f"unknown key {quote(name)}{did_you_mean(name, known)}"
        else:
            yield from _PROBLEMS.get(name, _bad_value)(name, line, value, content)
    yield from ((1, f"a scenario needs a {name}") for name in ("title", "question") if name not in content)
    if sum(name in content for name in ("task", "world", "dataset")) != 1:
        yield 1, "a scenario needs either a task, a world or a dataset"


def bad_settings(settings: SomeSettings) -> str | None:
    """Why a run cannot have these settings, in one line; None if it can."""
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
    elif problem := bad_settings(content[name]):
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
            check_subject(step, content.get("world"))
            if settings_so_far is not None:
                settings_so_far.follow(step)
        except ValueError as error:
            yield place.start_mark.line + 1, f"script step {number}: {error}"


def _resolved(content: dict[str, Any]) -> Settings | None:
    settings = content.get("settings") or {}
    return None if not isinstance(settings, dict) or bad_settings(settings) else resolve(settings)


def _bad_value(name: str, line: int, _node: yaml.Node, content: dict[str, Any]) -> Iterator[tuple[int, str]]:
    value = content[name]
    if name == "task" and not (isinstance(value, str) and names_function(value)) and value not in task_names():
        yield line, f"unknown task {quote(value)}{did_you_mean(str(value), task_names())}"
    elif name == "max_updates" and "stages" in content:
        yield line, "max_updates is the sum of the stages' updates: leave it out"
    elif name in _TEXTS and not (isinstance(value, str) and (value.strip() or name in _MAY_BE_EMPTY)):
        yield line, f"{name} takes text; got {quote(value)}"
    elif name in _LISTS and not (isinstance(value, list) and value and all(isinstance(each, str) for each in value)):
        yield line, f"{name} takes a list of texts; got {quote(value)}"
    elif name in ("columns", "chat_template_kwargs"):
        yield from ((line, problem) for problem in mapping_problems(name, value))
    elif name in LEAST and not (type(value) is int and LEAST[name] <= value <= MOST[name]):
        at_most = f" or more, {MOST[name]} at most" if type(value) is int and value > 0 else " or more"
        yield line, f"{name} takes a whole number, {LEAST[name]}{at_most}; got {quote(value)}"


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
    "stage": subject_problems,
}
