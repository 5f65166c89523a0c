"""What to learn: prompts, and the rewards that score answers to them.

A task is data (`task.py`): examples to train on, held-out examples, reward functions with TRL's signature, and gold
scorers, which are only tracked. A task knows nothing about models, so this room never imports torch or the screen.

Start with `arithmetic.py`, the smallest task. To add one, write such a file and a row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rlplay.tasks.arithmetic import arithmetic
from rlplay.tasks.calculator import calculator
from rlplay.tasks.guess import guess
from rlplay.tasks.open_questions import questions
from rlplay.tasks.own_task import make_task
from rlplay.tasks.task import Example, RewardFunction, Task, completion_text
from rlplay.tasks.word_problems import word_problems
from rlplay.trace.plugins import load, names
from rlplay.trace.text import quote
from rlplay.trusted import follow, place

__all__ = ["Example", "RewardFunction", "Task", "completion_text", "load_task", "speaker_of", "stage_of", "task_names"]

_GROUP = "rlplay.tasks"
_TASKS: dict[str, Callable[[], Task]] = {
    "arithmetic": arithmetic,
    "word_problems": word_problems,
    "questions": questions,
    "guess": guess,
    "calculator": calculator,
}


def task_names() -> list[str]:
    """The names that `load_task` takes, simplest first, those of other packages last."""
    return [*_TASKS, *(name for name in names(_GROUP) if name not in _TASKS)]


def stage_of(name: str | None) -> str:
    """What a bundled task is about, one of `verbs.STAGES`; "all" for any other name."""
    return _TASKS[name]().stage if name in _TASKS else "all"


def speaker_of(name: str | None) -> str:
    """What answers the model between its turns in a bundled task, such as "calculator"; "" for any other name."""
    return _TASKS[name]().speaker if name in _TASKS else ""


def load_task(name: str) -> Task:
    """The task called `name`. Raises ValueError, naming the known tasks, for any other name.

    One of another package is a function that returns a task. Where it fails, the ValueError names the package.
    """
    if name in _TASKS:
        return _TASKS[name]()
    if name not in names(_GROUP):
        raise ValueError(f"unknown task {quote(name)}: choose one of {', '.join(task_names())}")
    entry = names(_GROUP)[name]
    load(_GROUP, name, light=False)
    follow([place(entry.value)])  # the user has installed it
    return msgspec.structs.replace(make_task(entry.value), name=name)
