"""What a stage learns from, as lines of the script: its task and its reward functions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.export.trl.fields import absolute, absolute_entry, literal
from rlplay.export.trl.recorded_stages import PlayedStage
from rlplay.scenario.schema import Scenario
from rlplay.tasks import is_own_task, load_task
from rlplay.tasks.own_rewards import reward_name
from rlplay.trace.runfile import RunReader
from rlplay.user_code import names_function


def data_imports(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """The imports that `data_lines` of these scenarios, and their tools, need."""
    tasks = [scenario.task or "" for scenario in scenarios]
    named = any(task and not is_own_task(task) for task in tasks)
    yield f"from rlplay.tasks import for_trl{', load_task' if named else ''}"
    yield from _import("rlplay.tasks.own_prompts", {
        "instructed": any(s.system_prompt for s in scenarios),
        "load_own": any(not s.task for s in scenarios),
        "narrowed": any(s.prompts is not None for s in scenarios),
    })  # fmt: skip
    yield from _import("rlplay.tasks.own_rewards", {
        "load_function": any(s.tools or s.environment_factory for s in scenarios),
        "load_reward": any(s.reward for s in scenarios),
    })  # fmt: skip
    yield from _import("rlplay.tasks.own_task", {"make_task": any(map(is_own_task, tasks))})


def _import(module: str, names: dict[str, bool]) -> Iterator[str]:
    if any(names.values()):
        yield f"from {module} import {', '.join(name for name, needed in names.items() if needed)}"


def data_lines(scenario: Scenario, rewarded: bool) -> Iterator[str]:
    """The task and, if the run has stages that are `rewarded`, the reward functions of a scenario without stages."""
    task = _task(scenario)
    yield f"task = {task}" if scenario.prompts is None else f"task = narrowed({task}, {literal(scenario.prompts)})"
    if scenario.system_prompt:
        yield f"task = instructed(task, {literal(scenario.system_prompt)})"
    if scenario.reward:
        yield "rewards = {"
        for entry in scenario.reward:
            yield f"    {literal(reward_name(entry))}: load_reward({literal(absolute_entry(entry))}),"
        yield "}"
    elif rewarded:
        yield "rewards = task.rewards"


def reward_names(reader: RunReader, stage: PlayedStage) -> list[str]:
    """The names of a stage's reward functions; of a task of the user's, which is not run here, those it called."""
    scenario = stage.scenario
    if scenario.reward or not scenario.task:
        return [reward_name(entry) for entry in scenario.reward]
    if not names_function(scenario.task):
        return list(load_task(scenario.task).rewards)
    kept = [number for number in reader.detailed() if stage.first <= number <= stage.last]
    scored = reader.load(kept[0]).scored if kept else None
    of_environment = (scenario.environment_factory or "").rpartition(":")[2]  # TRL adds its reward itself
    called = () if scored is None else scored.weights
    return [name for name in called if name not in (REWARD_MODEL, of_environment)]


def gold_names(scenario: Scenario) -> list[str]:
    """The gold scores of a bundled task, which may be paid in place of the scenario's own rewards."""
    return list(load_task(scenario.task).gold) if scenario.task and not is_own_task(scenario.task) else []


def _task(scenario: Scenario) -> str:
    """The task as an expression of the script."""
    if not scenario.task:
        return _own_dataset(scenario)
    if is_own_task(scenario.task):
        return f"make_task({literal(absolute_entry(scenario.task))})"
    return f"load_task({literal(scenario.task)})"


def _own_dataset(scenario: Scenario) -> str:
    """The dataset as an expression of the script, in the words of the run."""
    words = [literal(absolute(scenario.dataset or "")), "{}"]
    parts: dict[str, Any] = {"config": scenario.dataset_config, "split": scenario.dataset_train_split}
    parts |= {"columns": scenario.columns or None}
    words += [f"{name}={literal(value)}" for name, value in parts.items() if value is not None]
    return f"load_own({', '.join(words)})"
