"""Another task or dataset on the command line, in place of a scenario's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlplay.scenario.named_files import ScenarioError
from rlplay.scenario.schema import Scenario
from rlplay.spelling import did_you_mean
from rlplay.tasks import task_names
from rlplay.tasks.library import is_of_library
from rlplay.trace.text import quote
from rlplay.user_code import names_function


def other_prompts(scenario: Scenario, task: str | None, dataset: str | None) -> dict[str, Any]:
    """What changes in `scenario` if the command line names other prompts. Raises ScenarioError."""
    if task is None and dataset is None:
        return {}
    if task is not None and dataset is not None:
        raise ScenarioError("--task brings its own prompts, and so does --dataset; give one of them")
    if scenario.world is not None:
        raise ScenarioError(f"{scenario.name} is about a world: it takes no --{'dataset' if task is None else 'task'}")
    shared: dict[str, Any] = {
        "summary": "",
        "task": task,
        "dataset": dataset,
        "prompts": None,
        "script": [],
        "quiz": [],
        "card": {},
    }
    shared |= {"shows": [], "dataset_config": None, "dataset_train_split": None, "columns": {}}
    if task is not None:
        if not names_function(task) and task not in task_names():
            raise ScenarioError(f"unknown task {quote(task)}{did_you_mean(task, task_names())}")
        return shared | _titled(task) | {"reward": []}
    return shared | {
        "name": "own-data",
        "title": "Your own data",
        "question": f"What does {Path(dataset or '').name} teach?",
    }


def _titled(task: str) -> dict[str, Any]:
    """The words about a task, and what the screen begins with."""
    if is_of_library(task):
        library, _, name = task.partition("?")[0].partition(":")
        return {"name": name, "title": f"{name} of {library}", "question": f"What does {name} teach?", "stage": ""}
    return {"name": "own-task", "title": "Your own task", "question": f"What does {Path(task).name} teach?"}
