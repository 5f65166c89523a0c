"""The files, folders and modules that a scenario names: found beside it, and there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from rlplay.plain_yaml import PlainYamlError, plain_yaml
from rlplay.scenario.dtypes import BFLOAT16, DTYPES
from rlplay.scenario.names import looks_like_folder
from rlplay.scenario.scenario_world import POLICIES, model_problem
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_scenarios
from rlplay.tasks import is_own_task
from rlplay.tasks.hub_dataset import looks_like_dataset
from rlplay.tasks.library import has_turns, is_of_library, library_problem, with_files
from rlplay.tasks.remote.served_file import is_served
from rlplay.trace.text import brief_path, quote
from rlplay.trusted import is_module

_OWN_KWARGS = ("conversation", "tokenize", "add_generation_prompt", "continue_final_message", "return_tensors",
               "return_dict", "return_assistant_tokens_mask", "padding", "truncation", "max_length")  # fmt: skip
"""Arguments of the method that applies a chat template, whose values decide what it returns."""


class ScenarioError(ValueError):
    """A scenario that rlplay cannot play: one line with the file, the place and what to do."""


def from_folder(scenario: Scenario, folder: Path) -> Scenario:
    """`scenario` with the files in `folder` that it names by their paths. Raises ScenarioError if one is missing."""

    def beside(name: str) -> str:
        return str(folder / name) if (folder / name).exists() else name

    def found(kind: str, entry: str) -> str:
        if kind == "a reward" and is_served(entry):
            return beside(entry)
        place, colon, function = entry.rpartition(":")
        if not (place.endswith(".py") or is_module(place)) or not function.isidentifier():
            judge = ", or NAME.yaml for a judge," * (kind == "a reward")
            forms = f"MODULE:FUNCTION or FILE.py:FUNCTION{judge} e.g. score.py:short"
            raise ScenarioError(f"{kind} takes the form {forms}; got {quote(entry)}")
        return entry if is_module(place) else f"{beside(place)}{colon}{function}"

    if is_of_library(scenario.environment):
        raise ScenarioError(f"environment {scenario.environment} brings its own prompts; leave task and dataset out")
    rewards = [found("a reward", entry) for entry in scenario.reward]
    tools = [found("a tool", entry) for entry in scenario.tools]
    model = scenario.model if scenario.model in ("pocket", *POLICIES) else beside(scenario.model)
    changes: dict[str, Any] = {"reward": rewards, "tools": tools, "model": model}
    changes["teacher"] = scenario.teacher and beside(scenario.teacher)
    if is_of_library(scenario.task):
        changes["task"] = with_files(scenario.task or "", beside)
    elif scenario.task is not None and is_own_task(scenario.task):
        changes["task"] = found("a task", scenario.task)
    if scenario.environment is not None:
        changes["environment"] = found("an environment", scenario.environment)
    if scenario.environment_factory is not None:
        changes["environment_factory"] = found("an environment_factory", scenario.environment_factory)
    if scenario.dataset is not None:
        changes["dataset"] = beside(scenario.dataset)
    changes["stages"] = [
        msgspec.structs.replace(
            stage, dataset=stage.dataset and beside(stage.dataset), reward=[found("a reward", e) for e in stage.reward]
        )
        for stage in scenario.stages
    ]
    return _present(msgspec.structs.replace(scenario, **changes))


def weights_problem(scenario: Scenario) -> str | None:
    """Why the model's weights cannot be as the scenario asks."""
    if scenario.dtype not in DTYPES:
        return f"dtype is one of {', '.join(DTYPES)}; got {quote(scenario.dtype)}"
    if scenario.world is not None and (scenario.use_peft or scenario.dtype == BFLOAT16):
        return f"{scenario.name} is about a world: its policy takes no dtype and no use_peft"
    if scenario.lora_target_modules and not scenario.use_peft:
        return "lora_target_modules needs use_peft"
    return None


def typed_mapping(name: str, given: str | Mapping[str, Any]) -> dict[str, Any]:
    """What the command line gives for `columns` or `chat_template_kwargs`. Raises ScenarioError."""
    value: Any = given
    if isinstance(given, str) and name == "columns":
        pairs = (pair.partition("=") for pair in given.split(","))
        value = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    elif isinstance(given, str):
        with suppress(PlainYamlError):
            value = plain_yaml(given)
    for problem in mapping_problems(name, value):
        raise ScenarioError(problem)
    return dict(value)


def mapping_problems(name: str, value: Any) -> Iterator[str]:
    """What is wrong with a scenario's `columns` or `chat_template_kwargs`."""
    words = [each for pair in value.items() for each in pair] if isinstance(value, dict) else []
    if name == "columns":
        if not words or not all(isinstance(each, str) and each for each in words):
            yield (
                f"columns takes names with the dataset's own, as in prompt=question,answer=solution; got {quote(value)}"
            )
    elif not isinstance(value, dict) or not all(isinstance(each, str) for each in value):
        yield f"chat_template_kwargs takes names with values, as in {{enable_thinking: false}}; got {quote(value)}"
    elif taken := [each for each in value if each in _OWN_KWARGS]:
        yield f"chat_template_kwargs cannot set {taken[0]}, which rlplay sets itself; leave it out"


def _present(scenario: Scenario) -> Scenario:
    for seen in (scenario, *stage_scenarios(scenario)):
        _dataset_present(seen)
        for entry in seen.reward:
            _function_present("reward", entry)
    if scenario.world is not None and any(stage.dataset for stage in scenario.stages):
        raise ScenarioError(f"{scenario.name} is about a world: its stages take no dataset")
    if scenario.columns and scenario.dataset is None:
        raise ScenarioError("columns belong to a dataset; this scenario has none")
    for name in ("system_prompt", "chat_template_kwargs"):
        if getattr(scenario, name) and scenario.world is not None:
            raise ScenarioError(f"a world has no chat messages: it takes no {name}")
    if problem := model_problem(scenario) or weights_problem(scenario):
        raise ScenarioError(problem)
    if looks_like_folder(scenario.model) and not Path(scenario.model).expanduser().is_dir():
        raise ScenarioError(f"model {scenario.model}: no such folder")
    if scenario.teacher is not None and scenario.world is not None:
        raise ScenarioError("a world takes no teacher: it has no words that another model could read")
    if scenario.task is not None and is_of_library(scenario.task) and (problem := library_problem(scenario.task)):
        raise ScenarioError(problem)
    if scenario.task is not None and is_own_task(scenario.task):
        _function_present("task", scenario.task)
    _environment_present(scenario)
    return scenario


def _environment_present(scenario: Scenario) -> None:
    kinds = {"environment": scenario.environment, "environment_factory": scenario.environment_factory}
    given = [(kind, entry) for kind, entry in kinds.items() if entry is not None]
    given += [("tools", entry) for entry in scenario.tools]
    if given and scenario.world is not None:
        raise ScenarioError("a world is an environment itself: it takes no other")
    if given and has_turns(scenario.task or ""):
        raise ScenarioError(f"{scenario.task} replies to every turn itself, so it goes with no {given[0][0]}")
    if scenario.environment is not None and len(given) > 1:
        raise ScenarioError(f"environment replies to every turn itself, so it goes with no {given[1][0]}")
    for kind, entry in given:
        _function_present(kind, entry)


def _function_present(kind: str, entry: str) -> None:
    place = entry if is_served(entry) else entry.rpartition(":")[0]
    package = place.partition(".")[0]
    if is_module(place) and not _installed(package):
        raise ScenarioError(f"{kind} {entry}: no package {package} is installed; install it, or name a file")
    if not is_module(place) and not Path(place).is_file():
        raise ScenarioError(f"{kind} {entry}: there is no file {place}")


def _dataset_present(scenario: Scenario) -> None:
    """Checks what it can without asking the hub, which alone knows whether it has a dataset of this name."""
    name = scenario.dataset
    if name is None or Path(name).is_file():
        if scenario.dataset_config or scenario.dataset_train_split:
            found = "this scenario has none" if name is None else f"{name} is a file"
            raise ScenarioError(f"dataset_config and dataset_train_split belong to a Hugging Face dataset; {found}")
        return
    if not (Path(name).is_dir() or looks_like_dataset(name)):
        raise ScenarioError(f"dataset {brief_path(str(name))}: no such file")
    if not _installed("datasets"):
        missing = "" if Path(name).is_dir() else "there is no such file; "
        raise ScenarioError(f"dataset {name}: {missing}to read a dataset from Hugging Face, pip install datasets")


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # of modules without a specification, such as __main__
        return False
