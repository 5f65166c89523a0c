"""What to learn: prompts, and the rewards that score answers to them.

A task is data (`task.py`): examples to train on, held-out examples, reward functions with TRL's signature, and gold
scorers, which are only tracked. A task knows nothing about models, so this room never imports torch or the screen.

Start with `arithmetic.py`, the smallest task. To add one, write such a file and a row in the table below.
"""

from __future__ import annotations

from collections.abc import Callable

from rlplay.tasks.arithmetic import arithmetic
from rlplay.tasks.calculator import calculator
from rlplay.tasks.guess import guess
from rlplay.tasks.questions import questions
from rlplay.tasks.task import Example, RewardFunction, Task, completion_text
from rlplay.tasks.word_problems import word_problems

__all__ = ["Example", "RewardFunction", "Task", "completion_text", "load_task", "task_names"]

_TASKS: dict[str, Callable[[], Task]] = {
    "arithmetic": arithmetic,
    "word_problems": word_problems,
    "questions": questions,
    "guess": guess,
    "calculator": calculator,
}


def task_names() -> list[str]:
    """The names that `load_task` takes, simplest first."""
    return list(_TASKS)


def load_task(name: str) -> Task:
    """The task called `name`. Raises ValueError, naming the known tasks, for any other name."""
    if name not in _TASKS:
        raise ValueError(f"unknown task {name!r}: choose one of {', '.join(_TASKS)}")
    return _TASKS[name]()
