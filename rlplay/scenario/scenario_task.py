"""The tasks of a scenario."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rlplay.algorithms.settings import REWARD_MODEL
from rlplay.scenario.scenario_world import world_of
from rlplay.scenario.schema import Scenario
from rlplay.scenario.stage_settings import stage_scenarios, stage_settings
from rlplay.tasks import is_own_task, load_task
from rlplay.tasks.own_prompts import check_reward_weights, check_sources, instructed, load_own, narrowed
from rlplay.tasks.own_rewards import check_columns, load_environment, own_rewards, with_tools
from rlplay.tasks.own_task import make_task
from rlplay.tasks.task import Task
from rlplay.worlds.world_task import world_task


def tasks_for(scenario: Scenario, progress: Callable[[str], object] = str) -> list[Task]:
    """The task of each stage of `scenario`, which is the same one unless a stage has a dataset or rewards of its own.

    `progress` is called with a description of each step that may take long. Raises ValueError, one line.
    """
    found, tasks = dict[bytes, Task](), list[Task]()
    trained = list[str]()
    for seen, settings in zip(stage_scenarios(scenario), stage_settings(scenario), strict=True):
        key = msgspec.json.encode(seen)
        task = found[key] if key in found else _task(seen, progress)
        found[key] = task
        names = [*task.rewards, *trained]
        check_reward_weights(settings.reward_weights, [*names, *task.gold])
        check_sources(task, settings, names)
        check_columns(task)
        if settings.loss_type == "reward":
            trained = [REWARD_MODEL]
        tasks.append(task)
    return tasks


def _task(scenario: Scenario, progress: Callable[[str], object]) -> Task:
    """The task, world or dataset of `scenario`, with the scenario's own rewards and prompts if it has any.

    The user's rewards replace the task's; the task's gold scores stay.
    """
    own = own_rewards(scenario.reward)
    if (world := world_of(scenario)) is not None:
        task = world_task(world)
        task = msgspec.structs.replace(task, rewards=own or task.rewards)
    elif scenario.dataset is not None:
        parts = scenario.dataset_config, scenario.dataset_train_split
        task = load_own(scenario.dataset, own, progress, *parts, scenario.columns)
    else:
        name = scenario.task or ""
        task = make_task(name) if is_own_task(name) else load_task(name)
        task = msgspec.structs.replace(task, rewards=own or task.rewards)
    if scenario.prompts is not None:
        task = narrowed(task, scenario.prompts)
    if scenario.environment is not None:
        task = msgspec.structs.replace(task, environment=load_environment(scenario.environment))
    if scenario.tools or scenario.environment_factory:
        task = with_tools(task, scenario.tools, scenario.environment_factory)
    if scenario.system_prompt:
        task = instructed(task, scenario.system_prompt)
    return task
